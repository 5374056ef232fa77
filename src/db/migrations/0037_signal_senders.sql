-- The name of the key that sent a signal, or asked for a change of many: a signal may answer for a person. Null: of
-- before.
alter table signals add column sent_by text;
alter table bulk_jobs add column asked_by text;
