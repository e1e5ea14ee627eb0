-- The store's incarnation, and what was acknowledged to each session (P44). The same numbers and names as in ../sqlite.
-- Expands only: processes of the release before go on beside it, and notice nothing.

-- One row: 0 until the store goes back in time, a random number from then on; who noticed it, and when.
CREATE TABLE incarnations (
    one         integer PRIMARY KEY CHECK (one = 1),
    incarnation bigint  NOT NULL,
    changed_us  bigint  NOT NULL,
    note        text    NOT NULL
);
INSERT INTO incarnations (one, incarnation, changed_us, note) VALUES (1, 0, 0, '');

-- Number of the last batch that a session has committed, without a gap. Not in the row of the session: that one is shared by its
-- claims and reservations, this one is changed by every commit.
CREATE TABLE session_marks (
    session_id bigint PRIMARY KEY,
    mark       bigint NOT NULL
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- The incarnation in which the bank's generation began, and from which generation on which one is part of its name (`2:83a1 `).
ALTER TABLE banks ADD COLUMN incarnation bigint NOT NULL DEFAULT 0;
ALTER TABLE banks ADD COLUMN namespaces  text   NOT NULL DEFAULT '';

UPDATE bench_schema SET version = 13;
