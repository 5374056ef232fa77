-- The id of the key that secrets were last sealed with (docs/operate/encryption-key.md); null: not known yet.
alter table engine_lease add column key_id text;
