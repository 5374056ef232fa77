-- The slugs of the triggers that an event has yet to fire; null: none.
alter table events add column fires json;

-- Serves the job that fires them.
create index events_firing on events (created_at, id) where fires is not null;
