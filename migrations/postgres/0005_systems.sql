-- Breakers of memory systems. The same numbers and names as in ../sqlite. Only additions.

-- One row per system (name and place) and operation in trouble: failures in a row, times in a row that it was opened, closed to
-- everybody until until_us; trying 1: somebody asks the system first.
CREATE TABLE breakers (
    system    text   NOT NULL,
    operation text   NOT NULL,
    failures  bigint NOT NULL DEFAULT 0,
    opened    bigint NOT NULL DEFAULT 0,
    until_us  bigint NOT NULL DEFAULT 0,
    trying    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (system, operation)
);

UPDATE bench_schema SET version = 5;
