-- Under which names the four roles of this store stand at the server; no row: everything is done under one. Only an addition.
CREATE TABLE bench_roles (
    one    integer PRIMARY KEY CHECK (one = 1),
    prefix text    NOT NULL
);

UPDATE bench_schema SET version = 17;
