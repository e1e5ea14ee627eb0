-- How much of a run is worked on at a time, where a claim can see it. The same numbers and names as in ../sqlite. Only additions: runs of the
-- release before have no limit here, and its dispatcher keeps theirs.

-- Questions in flight over all workers; no limit when it is NULL.
ALTER TABLE runs ADD COLUMN question_limit bigint;
-- Segments of banks in flight over all workers.
ALTER TABLE runs ADD COLUMN retain_limit bigint;

UPDATE bench_schema SET version = 8;
