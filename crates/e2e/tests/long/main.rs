//! The long fault tests: hours of bad weather in some minutes. They are no part of `cargo test`; `make test-faults` runs them,
//! and so does `sh scripts/test.sh` with `BENCH_TEST_FAULTS=long`.

mod brokers;
mod disks;
mod outages;
mod storms;
