-- What traces are built of beside the steps themselves. The same numbers and names as in ../postgres. Only additions: processes of the release
-- before go on beside it, and what they store is shown without it.

-- When a step was stored: what lies between its end and this is the checkpoint.
ALTER TABLE checkpoints ADD COLUMN stored_us INTEGER;

-- Tries that stored no step, because they failed or were parked (doc: JSON).
CREATE TABLE attempts (
    run_no   INTEGER NOT NULL,
    task_key INTEGER NOT NULL,
    epoch    INTEGER NOT NULL,
    doc      TEXT NOT NULL,
    PRIMARY KEY (run_no, task_key, epoch)
) WITHOUT ROWID;

-- How the times of a run's questions are spread: counts by bucket, added to by every process that traces.
CREATE TABLE latencies (
    run_no    INTEGER NOT NULL,
    bucket    INTEGER NOT NULL,
    questions INTEGER NOT NULL,
    PRIMARY KEY (run_no, bucket)
) WITHOUT ROWID;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('attempts', 'attempts', '1000 1000 2 1'),
    ('latencies', 'latencies', '1000 100 1');

UPDATE bench_schema SET version = 7;
