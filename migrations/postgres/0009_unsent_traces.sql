-- Traces that were decided and not sent. The same numbers and names as in ../sqlite. Only additions: processes of the release before go on
-- beside it, and what they keep they send themselves.

-- Kept questions whose traces have not reached a collector yet; nobody else sends one before it is due.
CREATE TABLE unsent_traces (
    run_no   bigint NOT NULL,
    task_key bigint NOT NULL,
    due_us   bigint NOT NULL,
    PRIMARY KEY (run_no, task_key)
);
CREATE INDEX unsent_traces_due ON unsent_traces (due_us);

UPDATE bench_schema SET version = 9;
