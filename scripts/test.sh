#!/bin/sh
# Runs everything that CI runs: format, lints, dependencies, documentation, images and chart, all tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
need_tools make # of jemalloc
need_cargo_deny
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"

say "== format"
cargo fmt --all --check
say "== lints"
cargo clippy --workspace --all-targets --locked -- -D warnings
say "== dependencies"
cargo deny --locked --log-level error check licenses bans sources
if cargo deny --log-level off fetch db >/dev/null 2>&1; then
    cargo deny --locked --log-level error check advisories
elif [ "${BENCH_ADVISORIES:-}" = required ]; then
    say "advisories cannot be checked: the database at github.com/RustSec/advisory-db cannot be fetched from here, and BENCH_ADVISORIES=required"
    exit 4
else
    say "advisories are not checked: the database at github.com/RustSec/advisory-db cannot be fetched from here"
fi
say "== documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet
sh scripts/test-deploy.sh
say "== tests"
# most of them wait for servers, leases and pauses: twice as many at once as there are cores
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}"
cargo test --workspace --locked
if [ "${BENCH_TEST_FAULTS:-}" = long ]; then
    say "== long fault tests"
    cargo test --workspace --locked --test long -- --nocapture
fi
