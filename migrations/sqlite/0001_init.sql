-- Runs, items, tasks, checkpoints, calls and results. The same numbers and names as in ../postgres.
-- Times are microseconds since 1970; hashes are 32 bytes; `doc`, `facts`, `spec`, `segments`, `tags`, `info` are JSON;
-- every BLOB called `body` or `reply` is a zstd frame. Free texts escape U+0000 (see src/codec.rs).

CREATE TABLE bench_schema (
    one        INTEGER PRIMARY KEY CHECK (one = 1),
    version    INTEGER NOT NULL,
    -- lowest schema version that a build must know to read, and to write
    min_reader INTEGER NOT NULL,
    min_writer INTEGER NOT NULL
);

CREATE TABLE runs (
    run_no          INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id          TEXT    NOT NULL UNIQUE,
    name            TEXT,
    tags            TEXT    NOT NULL,
    user_name       TEXT    NOT NULL,
    spec            TEXT    NOT NULL,
    lineage         TEXT    NOT NULL,
    control_of      INTEGER,
    domain          TEXT    NOT NULL,
    imported        INTEGER NOT NULL,
    code_version    TEXT    NOT NULL,
    state           TEXT    NOT NULL,
    state_version   INTEGER NOT NULL,
    reason          TEXT,
    created_us      INTEGER NOT NULL,
    finished_us     INTEGER,
    active_us       INTEGER NOT NULL,
    active_since_us INTEGER,
    resumed_times   INTEGER NOT NULL,
    planned         INTEGER NOT NULL,
    result_version  INTEGER NOT NULL
);
CREATE INDEX runs_lineage ON runs (lineage);

-- Apart from the runs, because every commit changes it and the spec beside it would be rewritten too.
CREATE TABLE run_counters (
    run_no           INTEGER PRIMARY KEY,
    banks_planned    INTEGER NOT NULL DEFAULT 0,
    banks_ready      INTEGER NOT NULL DEFAULT 0,
    entries_planned  INTEGER NOT NULL DEFAULT 0,
    entries_retained INTEGER NOT NULL DEFAULT 0,
    scored           INTEGER NOT NULL DEFAULT 0,
    abstained        INTEGER NOT NULL DEFAULT 0,
    infra_error      INTEGER NOT NULL DEFAULT 0,
    answered         INTEGER NOT NULL DEFAULT 0,
    headline_sum     REAL    NOT NULL DEFAULT 0,
    spent            INTEGER NOT NULL DEFAULT 0,
    uncertain        INTEGER NOT NULL DEFAULT 0,
    last_commit_us   INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE run_events (
    event_no INTEGER PRIMARY KEY,
    run_no   INTEGER NOT NULL,
    at_us    INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    message  TEXT    NOT NULL
);
CREATE INDEX run_events_run ON run_events (run_no, event_no);

CREATE TABLE items (
    hash BLOB PRIMARY KEY,
    body BLOB NOT NULL
);

-- AUTOINCREMENT: a bank row names namespaces in memory systems, so its number is never used twice.
CREATE TABLE banks (
    bank_row     INTEGER PRIMARY KEY AUTOINCREMENT,
    run_no       INTEGER NOT NULL,
    bank_no      INTEGER NOT NULL,
    bank_id      TEXT    NOT NULL,
    content      BLOB    NOT NULL,
    questions    BLOB    NOT NULL,
    gold         BLOB    NOT NULL,
    segments     TEXT    NOT NULL,
    last_segment INTEGER NOT NULL,
    generation   INTEGER NOT NULL,
    handle       TEXT,
    state        INTEGER NOT NULL,
    position     INTEGER NOT NULL,
    segment      INTEGER NOT NULL,
    open_recalls INTEGER NOT NULL,
    reason       TEXT,
    UNIQUE (run_no, bank_no)
);

-- The role follows from the key. `concluded` is 1 for everything that is no question, so that the index of ended but
-- unconcluded questions stays as small as the work in flight.
CREATE TABLE tasks (
    run_no        INTEGER NOT NULL,
    task_key      INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    lease_epoch   INTEGER NOT NULL,
    session       INTEGER,
    attempts      INTEGER NOT NULL DEFAULT 0,
    losses        INTEGER NOT NULL DEFAULT 0,
    not_before    INTEGER NOT NULL DEFAULT 0,
    ready_at      INTEGER NOT NULL,
    published_at  INTEGER,
    publish_count INTEGER NOT NULL DEFAULT 0,
    open_children INTEGER NOT NULL DEFAULT 0,
    concluded     INTEGER NOT NULL DEFAULT 0,
    reason        TEXT,
    PRIMARY KEY (run_no, task_key)
) WITHOUT ROWID;
CREATE INDEX tasks_ready  ON tasks (run_no, task_key) WHERE state = 0;
CREATE INDEX tasks_leased ON tasks (session) WHERE state = 1;
CREATE INDEX tasks_ended  ON tasks (run_no, task_key) WHERE state >= 2 AND concluded = 0;

CREATE TABLE checkpoints (
    run_no   INTEGER NOT NULL,
    task_key INTEGER NOT NULL,
    step_no  INTEGER NOT NULL,
    facts    TEXT    NOT NULL,
    PRIMARY KEY (run_no, task_key, step_no)
) WITHOUT ROWID;

CREATE TABLE texts (
    run_no   INTEGER NOT NULL,
    task_key INTEGER NOT NULL,
    step_no  INTEGER NOT NULL,
    body     BLOB    NOT NULL,
    PRIMARY KEY (run_no, task_key, step_no)
) WITHOUT ROWID;

CREATE TABLE calls (
    attempt_id        BLOB    PRIMARY KEY,
    run_no            INTEGER NOT NULL,
    task_key          INTEGER NOT NULL,
    call_key          BLOB    NOT NULL,
    phase             INTEGER NOT NULL,
    outcome           INTEGER NOT NULL,
    model             TEXT    NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    cost              INTEGER NOT NULL,
    duration_us       INTEGER NOT NULL,
    at_us             INTEGER NOT NULL,
    reply             BLOB    NOT NULL
);
-- A lineage is a handful of runs: found through them, so that no call repeats the lineage's name.
CREATE INDEX calls_of_run ON calls (run_no, outcome, call_key);

CREATE TABLE facts (
    run_no      INTEGER NOT NULL,
    task_key    INTEGER NOT NULL,
    question_id TEXT    NOT NULL,
    category    TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    doc         TEXT    NOT NULL,
    PRIMARY KEY (run_no, task_key)
) WITHOUT ROWID;

CREATE TABLE sessions (
    session_id INTEGER PRIMARY KEY AUTOINCREMENT,
    worker     TEXT    NOT NULL,
    domain     TEXT    NOT NULL,
    info       TEXT    NOT NULL,
    counter    INTEGER NOT NULL,
    opened_us  INTEGER NOT NULL,
    ended_us   INTEGER
);
CREATE INDEX sessions_open ON sessions (domain, session_id) WHERE ended_us IS NULL;

CREATE TABLE summaries (
    run_no         INTEGER NOT NULL,
    result_version INTEGER NOT NULL,
    body           BLOB    NOT NULL,
    PRIMARY KEY (run_no, result_version)
);

-- A fresh file has no statistics, and without them the planner believes that a run has ten tasks and reads all of them
-- for every batch. These say what a run looks like: rows of the index, rows per run, rows per key.
ANALYZE sqlite_schema;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('tasks', 'tasks', '1000000 100000 1'),
    ('tasks', 'tasks_ready', '100000 10000 1'),
    ('tasks', 'tasks_leased', '1000 100'),
    ('tasks', 'tasks_ended', '10000 1000 1'),
    ('checkpoints', 'checkpoints', '3000000 300000 3 1'),
    ('texts', 'texts', '2000000 200000 2 1'),
    ('facts', 'facts', '1000000 100000 1'),
    ('banks', 'sqlite_autoindex_banks_1', '10000 1000 1'),
    ('calls', 'calls_of_run', '1000000 100000 50000 1'),
    ('calls', 'sqlite_autoindex_calls_1', '1000000 1'),
    ('runs', 'runs_lineage', '1000 2');

INSERT INTO bench_schema (one, version, min_reader, min_writer) VALUES (1, 1, 1, 1);
