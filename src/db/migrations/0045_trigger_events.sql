-- A trigger may publish an event instead of starting a sequence, and verify requests by the scheme of a provider.
alter table triggers
  alter column sequence_name drop not null,
  add column publish json,
  add column verify json;
