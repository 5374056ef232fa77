-- What an instance has to hear of one that it started, or that started it: inserted by the unit in which
-- the other decides it, deleted by the unit of the reader that takes it in. Of several from one to the
-- same other the last one counts.
create table kin_notes (
  to_id    uuid not null,
  from_id  uuid not null,
  id       uuid not null,
  word     text not null,
  primary key (to_id, from_id)
);
