-- Only the number: a file has no roles beside those of the machine.

UPDATE bench_schema SET version = 17;
