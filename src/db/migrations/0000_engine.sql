-- What must exist before anybody owns the database: the record of migrations, the lease and the
-- lanes. Any engine may apply this file, also while another one owns the database, so it never
-- changes; every later file is applied by the owner alone.

create table schema_migrations (
  version    integer     primary key,
  name       text        not null,
  checksum   text        not null,
  applied_at timestamptz not null default now()
);

-- One row: who owns the database. The owner of an epoch also holds a session advisory lock that is
-- named after it; application_name is what its writing sessions are called, so that a successor can
-- end them. All times are the database's. Rewritten every second or two, so the page keeps room for
-- the new version of the row beside the old ones.
create table engine_lease (
  id               smallint    primary key check (id = 1),
  epoch            bigint      not null,
  owner            text        not null,
  application_name text        not null,
  renewed_at       timestamptz not null,
  expires_at       timestamptz not null
) with (fillfactor = 10);

-- Epoch 0 belongs to nobody, its lock is free and its lease has ended: the first engine takes over.
insert into engine_lease (id, epoch, owner, application_name, renewed_at, expires_at)
values (1, 0, '', '', now(), now());

-- The fence: a flush of a lane first writes its batch number here, guarded by the epoch of its
-- engine. Written by every flush, hence the free space again.
create table lanes (
  lane  smallint primary key,
  epoch bigint   not null,
  batch bigint   not null default 0
) with (fillfactor = 10);
