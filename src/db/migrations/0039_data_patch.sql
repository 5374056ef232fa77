-- The members of context.data that differ from `data`: a unit writes those, and not the whole data again.
alter table instances add column data_patch json;
-- Room for the next versions of a row in its page, so that most updates change no index.
alter table instances set (fillfactor = 60);
