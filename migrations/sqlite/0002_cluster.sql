-- Leadership, and when a worker was last heard of. Expands only: builds of schema 1 work on beside it.

-- A row per scope, taken over when its counter stands still. No clock is compared (P4, P14).
CREATE TABLE leaders (
    scope      TEXT    PRIMARY KEY,
    holder     TEXT    NOT NULL,
    epoch      INTEGER NOT NULL,
    counter    INTEGER NOT NULL,
    renewed_us INTEGER NOT NULL,
    trouble    TEXT    NOT NULL DEFAULT ''
);

-- for people only: nothing is decided by it
ALTER TABLE sessions ADD COLUMN renewed_us INTEGER NOT NULL DEFAULT 0;

CREATE INDEX runs_open ON runs (domain, run_no) WHERE state = 'running';

UPDATE bench_schema SET version = 2;
