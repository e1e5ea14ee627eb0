-- Leadership, and when a worker was last heard of. Expands only: builds of schema 1 work on beside it.

-- A row per scope, taken over when its counter stands still. No clock is compared (P4, P14).
CREATE TABLE leaders (
    scope      text   PRIMARY KEY,
    epoch      bigint NOT NULL,
    counter    bigint NOT NULL,
    renewed_us bigint NOT NULL,
    holder     text   NOT NULL,
    trouble    text   NOT NULL DEFAULT ''
) WITH (fillfactor = 50);

-- for people only: nothing is decided by it
ALTER TABLE sessions ADD COLUMN renewed_us bigint NOT NULL DEFAULT 0;

CREATE INDEX runs_open ON runs (domain, run_no) WHERE state = 'running';

UPDATE bench_schema SET version = 2;
