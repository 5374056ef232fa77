-- Whose rows are seen by who reads for one tenant (docs/operate/roles.md). The policies have no effect until
-- row level security is switched on for the tables, which the start of the engine does where it may.
-- The owner of the tables, and roles that pass by, see everything as before.
do $$
declare
  name text;
  tenant constant text := 'current_setting(''engine.tenant'', true)';
begin
  foreach name in array array[
    'sequences', 'instances', 'dead_letters', 'audit_log', 'approvals', 'worker_tasks', 'open_tasks',
    'rate_limits', 'events', 'cron_schedules', 'api_keys', 'tenant_limits', 'credentials', 'triggers',
    'webhook_outbox', 'webhook_subscriptions', 'releases', 'effect_receipts', 'continuity_executions',
    'continuity_locations', 'provenance_entries', 'runtimes', 'placement_decisions', 'handoffs',
    'artifacts', 'capsule_imports', 'migrations'
  ] loop
    execute format('create policy own_rows on %I for select using (tenant_id = %s)', name, tenant);
  end loop;

  -- A look-up by key for each row, rather than a condition that could be answered by reading all instances.
  foreach name in array array[
    'timers', 'block_outputs', 'iteration_snapshots', 'signals', 'permit_requests', 'permits',
    'event_waits', 'event_takes', 'injected_blocks', 'checkpoints', 'step_logs', 'release_outcomes',
    'effect_resolutions'
  ] loop
    execute format(
      'create policy own_rows on %I for select using '
      '((select i.tenant_id from instances i where i.id = instance_id) = %s)', name, tenant);
  end loop;
end $$;

create policy own_rows on kin_notes for select using (
  (select i.tenant_id from instances i where i.id = to_id) = current_setting('engine.tenant', true));

create policy own_rows on rate_grants for select using (
  (select r.tenant_id from rate_limits r where r.id = limit_id) = current_setting('engine.tenant', true));

create policy own_rows on release_decisions for select using (
  (select r.tenant_id from releases r where r.id = release_id) = current_setting('engine.tenant', true));

-- The log outlives the subscription and the instance that it names.
create policy own_rows on webhook_deliveries for select using (
  coalesce(
    (select s.tenant_id from webhook_subscriptions s where s.id = subscription_id),
    (select i.tenant_id from instances i where i.id = instance_id)
  ) = current_setting('engine.tenant', true));

-- A worker that polls without a tenant takes tasks of every tenant.
create policy own_rows on workers for select using (
  tenant_id in (current_setting('engine.tenant', true), ''));

-- Ids of what nobody sees any more.
create policy own_rows on sequence_tombstones for select using (true);
