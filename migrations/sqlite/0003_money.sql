-- Money and pace shared by all processes of a store. The same numbers and names as in ../postgres. Only additions: processes of
-- the release before go on beside it (they reserve nothing here).

ALTER TABLE run_counters ADD COLUMN reserved  INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run_counters ADD COLUMN overdraft INTEGER NOT NULL DEFAULT 0;

-- One row per attempt from before its send until its settlement. state 0: open; 1: its session ended, so nobody knows what it cost.
-- day: days since 1970 (UTC) when it was reserved.
CREATE TABLE reservations (
    attempt_id BLOB    PRIMARY KEY,
    run_no     INTEGER NOT NULL,
    session    INTEGER NOT NULL,
    amount     INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    phase      INTEGER NOT NULL,
    state      INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX reservations_open ON reservations (session) WHERE state = 0;
CREATE INDEX reservations_lost ON reservations (run_no) WHERE state = 1;

-- What runs have spent and reserved, by what caps hold for beside the run itself. kind 1: a phase of a run (scope: run number,
-- part: phase); kind 2: a day of all runs of the store (scope: days since 1970, part 0). spent includes uncertain.
CREATE TABLE budgets (
    kind      INTEGER NOT NULL,
    scope     INTEGER NOT NULL,
    part      INTEGER NOT NULL,
    spent     INTEGER NOT NULL DEFAULT 0,
    reserved  INTEGER NOT NULL DEFAULT 0,
    uncertain INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (kind, scope, part)
) WITHOUT ROWID;

-- Send slots of an allowance (endpoint, account, limit group; kind 0: chat, 1: embeddings). Two theoretical arrival times, the end
-- of a Retry-After, and as JSON who is asking and what 429s have taught.
CREATE TABLE paces (
    endpoint    TEXT    NOT NULL,
    account     TEXT    NOT NULL,
    limit_group TEXT    NOT NULL,
    kind        INTEGER NOT NULL,
    requests_us INTEGER NOT NULL DEFAULT 0,
    tokens_us   INTEGER NOT NULL DEFAULT 0,
    blocked_us  INTEGER NOT NULL DEFAULT 0,
    doc         TEXT    NOT NULL DEFAULT '{}',
    PRIMARY KEY (endpoint, account, limit_group, kind)
) WITHOUT ROWID;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('reservations', 'reservations', '1000 1'),
    ('reservations', 'reservations_open', '1000 200'),
    ('reservations', 'reservations_lost', '100 50'),
    ('budgets', 'budgets', '1000 500 4 1');

UPDATE bench_schema SET version = 3;
