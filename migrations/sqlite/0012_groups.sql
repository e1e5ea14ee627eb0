-- Groups of runs that one command started, with one cap (P41). The same numbers and names as in ../postgres.

UPDATE bench_schema SET version = 12;
