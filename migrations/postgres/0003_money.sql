-- Money and pace shared by all processes of a store. The same numbers and names as in ../sqlite. Only additions: processes of
-- the release before go on beside it (they reserve nothing here).

ALTER TABLE run_counters ADD COLUMN reserved  bigint NOT NULL DEFAULT 0;
ALTER TABLE run_counters ADD COLUMN overdraft bigint NOT NULL DEFAULT 0;

-- One row per attempt from before its send until its settlement. state 0: open; 1: its session ended, so nobody knows what it cost.
-- day: days since 1970 (UTC) when it was reserved. The table stays small and changes all the time.
CREATE TABLE reservations (
    run_no     bigint   NOT NULL,
    session    bigint   NOT NULL,
    amount     bigint   NOT NULL,
    day        bigint   NOT NULL,
    phase      smallint NOT NULL,
    state      smallint NOT NULL DEFAULT 0,
    attempt_id bytea    PRIMARY KEY
) WITH (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX reservations_open ON reservations (session) WHERE state = 0;
CREATE INDEX reservations_lost ON reservations (run_no) WHERE state = 1;

-- What runs have spent and reserved, by what caps hold for beside the run itself. kind 1: a phase of a run (scope: run number,
-- part: phase); kind 2: a day of all runs of the store (scope: days since 1970, part 0). spent includes uncertain.
CREATE TABLE budgets (
    scope     bigint   NOT NULL,
    part      bigint   NOT NULL,
    spent     bigint   NOT NULL DEFAULT 0,
    reserved  bigint   NOT NULL DEFAULT 0,
    uncertain bigint   NOT NULL DEFAULT 0,
    kind      smallint NOT NULL,
    PRIMARY KEY (kind, scope, part)
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- Send slots of an allowance (endpoint, account, limit group; kind 0: chat, 1: embeddings). Two theoretical arrival times, the end
-- of a Retry-After, and as JSON who is asking and what 429s have taught.
CREATE TABLE paces (
    requests_us bigint   NOT NULL DEFAULT 0,
    tokens_us   bigint   NOT NULL DEFAULT 0,
    blocked_us  bigint   NOT NULL DEFAULT 0,
    kind        smallint NOT NULL,
    endpoint    text     NOT NULL,
    account     text     NOT NULL,
    limit_group text     NOT NULL,
    doc         text     NOT NULL DEFAULT '{}',
    PRIMARY KEY (endpoint, account, limit_group, kind)
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

UPDATE bench_schema SET version = 3;
