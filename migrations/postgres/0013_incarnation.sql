-- The store's incarnation, and what was acknowledged to each session (P44). The same numbers and names as in ../sqlite.

UPDATE bench_schema SET version = 13;
