-- The outputs of the unit that completed the instance: a row less for each.
alter table instances add column end_outputs json;
