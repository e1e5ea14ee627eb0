-- The store's incarnation, and what was acknowledged to each session (P44). The same numbers and names as in ../postgres.
-- Expands only: processes of the release before go on beside it, and notice nothing.

-- One row: 0 until the store goes back in time, a random number from then on; who noticed it, and when.
CREATE TABLE incarnations (
    one         INTEGER PRIMARY KEY CHECK (one = 1),
    incarnation INTEGER NOT NULL,
    changed_us  INTEGER NOT NULL,
    note        TEXT    NOT NULL
);
INSERT INTO incarnations (one, incarnation, changed_us, note) VALUES (1, 0, 0, '');

-- Number of the last batch that a session has committed, without a gap. Only processes of a cluster write it: a file that is
-- restored has none beside it.
CREATE TABLE session_marks (
    session_id INTEGER PRIMARY KEY,
    mark       INTEGER NOT NULL
);

-- The incarnation in which the bank's generation began, and from which generation on which one is part of its name (`2:83a1 `).
ALTER TABLE banks ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE banks ADD COLUMN namespaces  TEXT    NOT NULL DEFAULT '';

UPDATE bench_schema SET version = 13;
