-- Outages of the ways to models (P39), and what processes tell of them (P40). The same numbers and names as in ../postgres. Only additions.

-- One row per outage of a route in a queue domain; the newest of a route says how it is now. from_us, to_us: when it was closed to
-- everybody and opened again (open while null); prober: the session that probes until prober_us; held: tasks that were put off.
CREATE TABLE outages (
    domain        TEXT   NOT NULL,
    route         TEXT   NOT NULL,
    opening       INTEGER NOT NULL,
    from_us       INTEGER NOT NULL,
    to_us         INTEGER,
    failed_probes INTEGER NOT NULL,
    next_probe_us INTEGER NOT NULL,
    prober        INTEGER,
    prober_us     INTEGER,
    held          INTEGER NOT NULL DEFAULT 0,
    reason        TEXT   NOT NULL,
    PRIMARY KEY (domain, route, opening)
) WITHOUT ROWID;

-- What a session told of its routes, and when.
ALTER TABLE sessions ADD COLUMN evidence TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN evidence_us INTEGER NOT NULL DEFAULT 0;

UPDATE bench_schema SET version = 11;
