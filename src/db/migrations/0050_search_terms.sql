-- The values by which instances are found, where their sequence has searchable members (docs/search.md). Prefixes are
-- ranges, so the order is that of the bytes.
create table search_terms (
  instance_id  uuid not null,
  term         text collate "C" not null,
  tenant_id    text not null,
  created_at   timestamptz not null,
  primary key (instance_id, term)
);

create index search_terms_by_tenant on search_terms (tenant_id, term, created_at, instance_id);

create policy own_rows on search_terms for select using (tenant_id = current_setting('engine.tenant', true));
