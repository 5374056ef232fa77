-- Schedules may name their sequence instead of its id, and say with what its instances begin.
alter table cron_schedules alter column sequence_id drop not null;
alter table cron_schedules add column sequence text;
alter table cron_schedules add column version integer;
alter table cron_schedules add column context json not null default '{"data":{},"config":{}}';
alter table cron_schedules add column priority text not null default 'Normal';
