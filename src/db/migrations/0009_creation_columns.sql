-- What the rows of instances keep of their creation is named after it.
alter table instances rename column birth_audit to creation_audit;
alter table instances rename column birth_data to creation_data;
