-- Outages of providers and memory systems (P39), and processes that withdraw (P40). The same numbers and names as in ../postgres.

UPDATE bench_schema SET version = 11;
