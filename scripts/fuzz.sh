#!/bin/sh
# Makes up what others may send: `sh scripts/fuzz.sh TARGET --minutes N`, or `all` for one target after the other. What breaks a promise
# is saved below target/fuzz; it belongs into crates/fuzz/corpus when it is mended.
set -eu
cd "$(dirname "$0")/.."
RUSTC_WORKSPACE_WRAPPER="$PWD/scripts/fuzz-rustc.sh"
export RUSTC_WORKSPACE_WRAPPER
exec cargo run --locked --package bench-fuzz -- "$@"
