-- What fires next of a tenant, however many schedules others have.
create index cron_schedules_by_tenant_due on cron_schedules (tenant_id, next_fire_at, id) where enabled;
