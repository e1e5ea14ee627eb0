-- Replies that other runs may use, why replies ended. The same numbers and names as in ../sqlite. Only additions: builds of the
-- release before write calls that read as ended by themselves.

-- 1: nobody else is served this run's replies (`--cache off`)
ALTER TABLE runs  ADD COLUMN private_calls smallint NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN finish        text     NOT NULL DEFAULT 'stop';

-- for runs that share replies with the whole store
CREATE INDEX calls_by_key ON calls (call_key) WHERE outcome = 0;

UPDATE bench_schema SET version = 4;
