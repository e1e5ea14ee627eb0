-- Runs that may stop early: what their looks have found (JSON), and the questions of each bank that no look has opened yet, or that
-- were left out when the run stopped (JSON, none for any other run). The same number and name as in ../postgres.
-- Only an addition: workers of the release before put tasks of such runs back, for they do not read the version of their messages.

ALTER TABLE runs ADD COLUMN looks TEXT;
ALTER TABLE banks ADD COLUMN later TEXT;

UPDATE bench_schema SET version = 21;
