#!/bin/sh
# Runs everything that CI runs: format, lints, documentation, all tests.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
need_tools
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"

say "== format"
cargo fmt --all --check
say "== lints"
cargo clippy --workspace --all-targets --locked -- -D warnings
say "== documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet
say "== tests"
cargo test --workspace --locked
