-- Replies that other runs may use, why replies ended. The same numbers and names as in ../postgres. Only additions: builds of the
-- release before write calls that read as ended by themselves.

-- 1: nobody else is served this run's replies (`--cache off`)
ALTER TABLE runs  ADD COLUMN private_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN finish        TEXT    NOT NULL DEFAULT 'stop';

-- for runs that share replies with the whole store
CREATE INDEX calls_by_key ON calls (call_key) WHERE outcome = 0;

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES ('calls', 'calls_by_key', '1000000 2');

UPDATE bench_schema SET version = 4;
