#!/bin/sh
# Makes up what others may send: `sh scripts/fuzz.sh TARGET --minutes N`, or `all` for one target after the other. What breaks a promise
# is saved below target/fuzz; it belongs into crates/fuzz/corpus when it is mended.
set -eu
cd "$(dirname "$0")/.."
RUSTC_WORKSPACE_WRAPPER="$PWD/scripts/fuzz-rustc.sh"
export RUSTC_WORKSPACE_WRAPPER
# what reads inputs is optimised here, other than in tests: several times as many of them
optimised=""
for crate in coord datasets models queue settings; do
    optimised="$optimised --config profile.dev.package.bench-$crate.opt-level=1"
done
# shellcheck disable=SC2086
exec cargo run --locked --package bench-fuzz $optimised -- "$@"
