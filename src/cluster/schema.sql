-- The directory of a cluster: its cells, the tenants whose cell is settled, the moves of tenants, and the last report
-- of each engine. Every engine and every operator of the cluster can reach its database (docs/operate/cells.md).

create schema if not exists cluster;

create table if not exists cluster.cells (
  -- Also the name of its schema.
  name text primary key,
  -- Without a password, which libpq reads from a file or a variable.
  database_url text not null,
  -- The addresses of its engines for proxies, as host:port.
  engines text[] not null default '{}',
  -- open: takes new tenants. closed: keeps those it has. draining: its tenants are being moved away.
  state text not null default 'open' check (state in ('open', 'closed', 'draining')),
  created_at timestamptz not null default now()
);

-- When the first engine of the cell joined, and when all tenants with rows in the cell were settled. In between no
-- tenant is settled by hash: a tenant of this cell could be settled in another one.
alter table cluster.cells add column if not exists joined_at timestamptz;
alter table cluster.cells add column if not exists found_at timestamptz;

-- A tenant's cell is settled with its first row; until then its bucket decides.
create table if not exists cluster.placements (
  tenant_id text primary key,
  cell text not null references cluster.cells (name),
  -- hand: by an operator. hash: by its bucket. move: by a move. found: it had rows there before.
  placed_by text not null check (placed_by in ('hand', 'hash', 'move', 'found')),
  placed_at timestamptz not null default now(),
  -- Of the change that wrote the row.
  revision bigint not null
);
create index if not exists placements_by_cell on cluster.placements (cell, tenant_id);
create index if not exists placements_by_revision on cluster.placements (revision, tenant_id);

create table if not exists cluster.moves (
  -- A UUIDv7: sorts by time.
  id uuid primary key,
  tenant_id text not null,
  -- No references: a move outlives its cells.
  from_cell text not null,
  to_cell text not null,
  -- copying: its rows are being copied. switched: it is settled in to_cell, and its old rows still exist.
  state text not null check (state in ('copying', 'switched', 'done', 'given_up')),
  -- By table: the number of copied rows, and their hash.
  rows jsonb,
  error text,
  started_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  ended_at timestamptz
);
-- A tenant is moved once at a time.
create unique index if not exists moves_under_way on cluster.moves (tenant_id) where ended_at is null;

create table if not exists cluster.engines (
  id text primary key,
  cell text not null,
  address text not null,
  role text not null check (role in ('owner', 'standby')),
  version text not null,
  -- Delay of uncommitted writes. Null: it does not write.
  lag_ms integer,
  -- The latest of the cell's tables.
  migration integer not null,
  -- Of the encryption keys with which it can open sealed data.
  key_ids text[] not null,
  seen_at timestamptz not null default now()
);

-- Every change of cells and placements raises the number. The row stays locked until the commit, so that changes are
-- seen in the order of their numbers.
create table if not exists cluster.revision (
  one boolean primary key default true check (one),
  number bigint not null,
  schema_version integer not null
);
insert into cluster.revision (number, schema_version) values (0, 2)
  on conflict (one) do update set schema_version = excluded.schema_version
  where revision.schema_version < excluded.schema_version;
