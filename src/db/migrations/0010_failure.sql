-- Why an instance failed (docs/reference/failures.md): written when it fails, and when a retry takes that
-- back. Rows from before have none.
alter table instances add column failure json;
