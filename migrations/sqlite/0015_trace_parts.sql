-- Which question's trace brings which part of its run's own trace. The same numbers and names as in ../postgres. Only additions: processes of
-- the release before go on beside it, and send those parts as often as they did.

-- Parts are shared by many questions: the submission, and what was retained for a bank. The first kept question that needs one sends it.
CREATE TABLE trace_parts (
    run_no   INTEGER NOT NULL,
    part_key INTEGER NOT NULL,
    task_key INTEGER NOT NULL,
    PRIMARY KEY (run_no, part_key)
) WITHOUT ROWID;
CREATE INDEX trace_parts_task ON trace_parts (run_no, task_key);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('trace_parts', 'trace_parts', '100 100 1'),
    ('trace_parts', 'trace_parts_task', '100 100 1');

UPDATE bench_schema SET version = 15;
