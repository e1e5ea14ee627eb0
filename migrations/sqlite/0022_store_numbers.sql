-- Each store has a random number of its own, which is part of the names of its banks in memory systems: two stores that use the same
-- server never write into each other's banks. Banks that are there keep their names. The same number and name as in ../postgres.

ALTER TABLE incarnations ADD COLUMN identity INTEGER NOT NULL DEFAULT 0;
-- 52 bits, and never 0
UPDATE incarnations SET identity = (random() & 4503599627370495) | 1;

UPDATE bench_schema SET version = 22;
