-- Outages of the ways to models (P39), and what processes tell of them (P40). The same numbers and names as in ../sqlite. Only additions.

-- One row per outage of a route in a queue domain; the newest of a route says how it is now. from_us, to_us: when it was closed to
-- everybody and opened again (open while null); prober: the session that probes until prober_us; held: tasks that were put off.
CREATE TABLE outages (
    domain        text   NOT NULL,
    route         text   NOT NULL,
    opening       bigint NOT NULL,
    from_us       bigint NOT NULL,
    to_us         bigint,
    failed_probes bigint NOT NULL,
    next_probe_us bigint NOT NULL,
    prober        bigint,
    prober_us     bigint,
    held          bigint NOT NULL DEFAULT 0,
    reason        text   NOT NULL,
    PRIMARY KEY (domain, route, opening)
);

-- What a session told of its routes, and when.
ALTER TABLE sessions ADD COLUMN evidence text NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN evidence_us bigint NOT NULL DEFAULT 0;

UPDATE bench_schema SET version = 11;
