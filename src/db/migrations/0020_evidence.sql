-- In which pass of the loops around its step a try was made that left no output. Null: not known,
-- since it was made before this was kept.
alter table effect_receipts add column iteration text;

-- How the instance ended that the execution was last; written when that instance is removed. As long
-- as it is here, it says so itself.
alter table continuity_executions add column ended text;
