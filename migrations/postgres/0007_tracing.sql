-- What traces are built of beside the steps themselves. The same numbers and names as in ../sqlite. Only additions: processes of the release
-- before go on beside it, and what they store is shown without it.

-- When a step was stored: what lies between its end and this is the checkpoint.
ALTER TABLE checkpoints ADD COLUMN stored_us bigint;

-- Tries that stored no step, because they failed or were parked (doc: JSON).
CREATE TABLE attempts (
    run_no   bigint NOT NULL,
    task_key bigint NOT NULL,
    epoch    bigint NOT NULL,
    doc      text NOT NULL,
    PRIMARY KEY (run_no, task_key, epoch)
);

-- How the times of a run's questions are spread: counts by bucket, added to by every process that traces.
CREATE TABLE latencies (
    run_no    bigint NOT NULL,
    bucket    smallint NOT NULL,
    questions bigint NOT NULL,
    PRIMARY KEY (run_no, bucket)
);

UPDATE bench_schema SET version = 7;
