-- Tenants that are on their way from this cell or to it, and those that have left. What stands here is the truth of
-- the cell: its engine reads it before it serves or loads anything (docs/operate/moving-tenants.md).
create table tenant_moves (
  tenant_id   text primary key,
  -- Of the directory of the cluster.
  move_id     uuid not null,
  -- leaving, arriving: nothing of the tenant is done here. left: it lives in the other cell.
  -- admitted: its rows are of this cell, whose engine removes this one when it has taken them up.
  state       text not null check (state in ('leaving', 'arriving', 'left', 'admitted')),
  other_cell  text not null,
  -- Of the engine that does nothing of the tenant any more, nor will any later one; null: none has said so.
  held_epoch  bigint,
  -- Of an arriving one, when its rows have come: by table their number and hash.
  copied      json,
  -- Audit entries of the tenant get no earlier time.
  stamps_from timestamptz,
  changed_at  timestamptz not null default now()
);

create policy own_rows on tenant_moves for select using (tenant_id = current_setting('engine.tenant', true));
