-- The directory of a cluster: its cells, the tenants whose cell is settled, the moves of tenants, and the
-- engines as they last said of themselves. It lies in a schema of its own, in a database that every engine
-- and every operator of the cluster reaches (docs/operate/cells.md).

create schema if not exists cluster;

create table if not exists cluster.cells (
  -- The name of its schema, too.
  name text primary key,
  -- Of its database, without a password: that is in the file or the variable that libpq knows.
  database_url text not null,
  -- Where its engines listen, as host:port: what proxies are told.
  engines text[] not null default '{}',
  -- open: takes new tenants. closed: keeps those it has. draining: its tenants are being moved away.
  state text not null default 'open' check (state in ('open', 'closed', 'draining')),
  created_at timestamptz not null default now()
);

-- When the first engine of the cell was heard of, and when all tenants that the cell has rows of were settled. In
-- between nobody is settled by a hash anywhere: a tenant of this cell could be settled in another one.
alter table cluster.cells add column if not exists joined_at timestamptz;
alter table cluster.cells add column if not exists found_at timestamptz;

-- A tenant's cell is settled with the first thing that is written for it. Who has no row follows its bucket.
create table if not exists cluster.placements (
  tenant_id text primary key,
  cell text not null references cluster.cells (name),
  -- hand: an operator placed it. hash: its bucket led there. move: it was moved there. found: it was there before.
  placed_by text not null check (placed_by in ('hand', 'hash', 'move', 'found')),
  placed_at timestamptz not null default now(),
  -- The number that was raised for it: who knows an earlier one reads what has come since.
  revision bigint not null
);
create index if not exists placements_by_cell on cluster.placements (cell, tenant_id);
create index if not exists placements_by_revision on cluster.placements (revision, tenant_id);

create table if not exists cluster.moves (
  -- A UUIDv7: in the order of their starts.
  id uuid primary key,
  tenant_id text not null,
  -- No references: a move is remembered when its cell is gone. The placement it switches refers to a cell.
  from_cell text not null,
  to_cell text not null,
  -- copying: its rows go over. switched: it lives in to_cell, and its old rows are still there.
  state text not null check (state in ('copying', 'switched', 'done', 'given_up')),
  -- By table: how many rows went over, and their hash.
  rows jsonb,
  error text,
  started_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  ended_at timestamptz
);
-- A tenant is moved once at a time.
create unique index if not exists moves_under_way on cluster.moves (tenant_id) where ended_at is null;

create table if not exists cluster.engines (
  -- Of one process.
  id text primary key,
  cell text not null,
  address text not null,
  role text not null check (role in ('owner', 'standby')),
  version text not null,
  -- Of the writer: how far what is acknowledged lies behind what was asked. Null: it does not write.
  lag_ms integer,
  -- The latest of the cell's tables.
  migration integer not null,
  -- Of the encryption keys by which it reads what is sealed: they tell keys apart, and nothing of them.
  key_ids text[] not null,
  seen_at timestamptz not null default now()
);

-- Every change of cells and placements raises the number; who has cached them asks for it alone. Its row is
-- locked from there to the commit, so that changes are seen in the order of their numbers.
create table if not exists cluster.revision (
  one boolean primary key default true check (one),
  number bigint not null,
  -- Of these tables.
  schema_version integer not null
);
insert into cluster.revision (number, schema_version) values (0, 2)
  on conflict (one) do update set schema_version = excluded.schema_version
  where revision.schema_version < excluded.schema_version;
