-- Breakers of memory systems. The same numbers and names as in ../postgres. Only additions.

-- One row per system (name and place) and operation in trouble: failures in a row, times in a row that it was opened, closed to
-- everybody until until_us; trying 1: somebody asks the system first.
CREATE TABLE breakers (
    system    TEXT   NOT NULL,
    operation TEXT   NOT NULL,
    failures  INTEGER NOT NULL DEFAULT 0,
    opened    INTEGER NOT NULL DEFAULT 0,
    until_us  INTEGER NOT NULL DEFAULT 0,
    trying    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (system, operation)
) WITHOUT ROWID;

UPDATE bench_schema SET version = 5;
