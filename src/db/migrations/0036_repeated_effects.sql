-- How many instances that a dry run would retry would act outside a second time.
alter table bulk_jobs add column repeats_effects integer not null default 0;
