-- Which question's trace brings which part of its run's own trace. The same numbers and names as in ../sqlite. Only additions: processes of
-- the release before go on beside it, and send those parts as often as they did.

-- Parts are shared by many questions: the submission, and what was retained for a bank. The first kept question that needs one sends it.
CREATE TABLE trace_parts (
    run_no   bigint NOT NULL,
    part_key bigint NOT NULL,
    task_key bigint NOT NULL,
    PRIMARY KEY (run_no, part_key)
);
CREATE INDEX trace_parts_task ON trace_parts (run_no, task_key);

UPDATE bench_schema SET version = 15;
