-- Ready tasks that are not simply the next ones: published, or put off. Few, whatever the size of a run, and the dispatcher counts them at every
-- look. The same numbers and names as in ../sqlite. Only an addition: processes of the release before do not notice it.

CREATE INDEX tasks_waiting ON tasks (run_no, task_key) WHERE state = 0 AND (published_at IS NOT NULL OR not_before > 0);

UPDATE bench_schema SET version = 10;
