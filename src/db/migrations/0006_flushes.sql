-- The numbers of the last flushes of each lane: a flush was committed if and only if its row is
-- there. A flush adds one row and changes none, so that it costs the same while an old snapshot keeps
-- dead rows from being removed. Numbers that are long past are deleted many at a time.
create table lane_flushes (
  lane  smallint,
  batch bigint,
  primary key (lane, batch)
);

alter table lanes drop column batch;
