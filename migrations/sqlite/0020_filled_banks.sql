-- Banks that a run has not filled itself: name and handle under which their memory system holds them, and the bank row that filled
-- them (none for one that was there before). They hold for the first generation, while the row has no handle of its own. The same
-- number and name as in ../postgres.
-- Only an addition: workers of the release before put tasks of such runs back, for they do not read the version of their messages.

ALTER TABLE banks ADD COLUMN filled_name TEXT;
ALTER TABLE banks ADD COLUMN filled_handle TEXT;
ALTER TABLE banks ADD COLUMN filled_by INTEGER;
CREATE INDEX banks_filled_by ON banks (filled_by) WHERE filled_by IS NOT NULL;

UPDATE bench_schema SET version = 20;
