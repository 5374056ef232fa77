-- Sequences that were deleted while they had instances, which are removed a few at a time. Nothing
-- else says that this is not finished.
create table sequence_tombstones (
  id          uuid primary key,
  created_at  timestamptz not null
);
