-- Questions that ended without the headline's figure, because there was nothing to measure: the running mean is one of the others. The
-- same number and name as in ../postgres. Only an addition: processes of the release before do not notice it, and count none.

ALTER TABLE run_counters ADD COLUMN unmeasured INTEGER NOT NULL DEFAULT 0;

UPDATE bench_schema SET version = 19;
