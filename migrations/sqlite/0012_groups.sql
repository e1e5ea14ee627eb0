-- Groups of runs that one command started, with one cap (P41). The same numbers and names as in ../postgres. Only additions: older runs
-- have no group, and processes of the release before hold each run to its own cap.

-- group_id: the id of the run that the others belong to. What a group has spent and reserved stands in its runs' counters; who reserves
-- for one of them locks this row first. cap null: none.
CREATE TABLE run_groups (
    group_no INTEGER PRIMARY KEY,
    group_id TEXT    NOT NULL UNIQUE,
    cap      INTEGER
);

ALTER TABLE runs ADD COLUMN group_no INTEGER;
CREATE INDEX runs_of_group ON runs (group_no) WHERE group_no IS NOT NULL;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('runs', 'runs_of_group', '100 4'),
    ('run_groups', 'sqlite_autoindex_run_groups_1', '25 1');

UPDATE bench_schema SET version = 12;
