-- Traces that were decided and not sent. The same numbers and names as in ../postgres. Only additions: processes of the release before go on
-- beside it, and what they keep they send themselves.

-- Kept questions whose traces have not reached a collector yet; nobody else sends one before it is due.
CREATE TABLE unsent_traces (
    run_no   INTEGER NOT NULL,
    task_key INTEGER NOT NULL,
    due_us   INTEGER NOT NULL,
    PRIMARY KEY (run_no, task_key)
) WITHOUT ROWID;
CREATE INDEX unsent_traces_due ON unsent_traces (due_us);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('unsent_traces', 'unsent_traces', '100 100 1'),
    ('unsent_traces', 'unsent_traces_due', '100 1');

UPDATE bench_schema SET version = 9;
