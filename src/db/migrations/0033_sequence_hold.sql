-- A version on hold is started by its id or by a pin alone: names pass it over (docs/releases.md).
alter table sequences add column hold boolean not null default false;
