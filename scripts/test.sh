#!/bin/sh
# Runs what CI runs with each change: format, dependencies, lints, images and chart, tests. With BENCH_TEST_FAULTS=long, as every
# night: also documentation, the small build, and tests that take long.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
if [ "${BENCH_TEST_FAULTS:-}" = long ]; then need_tools make; else need_tools; fi # make builds jemalloc
features=$(test_features)
if ! cargo deny --version >/dev/null 2>&1 || ! cargo shear --version >/dev/null 2>&1; then
    need_python_tools target/cargo-tools scripts/cargo-tools.txt
    PATH="$PWD/target/cargo-tools/bin:$PATH"
fi
export CARGO_INCREMENTAL="${CARGO_INCREMENTAL:-0}"

began=$(date +%s)
# phase NAME: says what begins, and after how many minutes
phase() { say "== $1 (minute $((($(date +%s) - began) / 60)))"; }

log=$(mktemp)
deploying=""
trap 'kill $deploying 2>/dev/null || true; rm -f "$log" "$log".*' EXIT

# images and chart need no compiler: beside what does
sh scripts/test-deploy.sh >"$log.deploy" 2>&1 &
deploying=$!

phase "format"
cargo fmt --all --check
phase "dependencies"
cargo shear
cargo deny --locked --log-level error check licenses bans sources
if cargo deny --log-level off fetch db >/dev/null 2>&1; then
    cargo deny --locked --log-level error check advisories
elif [ "${BENCH_ADVISORIES:-}" = required ]; then
    say "advisories cannot be checked: the database at github.com/RustSec/advisory-db cannot be fetched from here, and BENCH_ADVISORIES=required"
    exit 4
else
    say "advisories are not checked: the database at github.com/RustSec/advisory-db cannot be fetched from here"
fi
if [ "${BENCH_TEST_FAULTS:-}" = long ]; then
    phase "lints and documentation"
    cargo clippy --workspace --all-targets --locked -- -D warnings
    # what the first run builds: fewer features, and somebody new sees its warnings
    cargo clippy --package bench-coord --no-default-features --bin bench-coord --locked -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet
else
    # Clippy stands in for the compiler of this workspace while the tests are built, as `cargo clippy` itself has it stand in while
    # it checks: a check of its own reads 600 packages a second time, a fifth of all that this script does.
    RUSTC_WORKSPACE_WRAPPER="$(rustc --print sysroot)/bin/clippy-driver"
    CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"
    export RUSTC_WORKSPACE_WRAPPER CLIPPY_ARGS
fi
phase "build"
cargo test --workspace --locked $features --no-run
deployed=0
wait "$deploying" || deployed=$?
deploying=""
cat "$log.deploy"
[ "$deployed" -eq 0 ] || exit "$deployed"
phase "tests"
# most of them wait for servers, leases and pauses: three times as many at once as there are cores
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((3 * $(nproc)))}"
# one of them opens a thousand connections, beside others in the same process
[ "$(ulimit -S -n)" = unlimited ] || [ "$(ulimit -S -n)" -ge 4096 ] || ulimit -S -n 4096 || true
# Tests that take minutes of both cores, and hold what others hold more quickly, run every night and before a release.
skips=""
if [ "${BENCH_TEST_FAULTS:-}" != long ]; then
    skips=$(sed -n 's/^\([a-z0-9_:]*\) .*/--skip \1/p' crates/e2e/tests/it/long_tests.txt)
    say "left to the night: $(printf '%s\n' "$skips" | grep -c .) tests (crates/e2e/tests/it/long_tests.txt); BENCH_TEST_FAULTS=long runs them"
fi
# Tests of processes, faults and time share few cores here: what fails beside the others is run again alone, which says
# whether it is broken. More than ten are not: then it is no matter of time.
{ cargo test --workspace --locked $features --no-fail-fast -- $skips 2>&1 || printf '%s\n' $? >"$log.code"; } | tee "$log"
# of a test program that was killed nobody saw the other tests: that is no matter of time
if grep -a "^  process didn't exit successfully: .*(signal: " "$log" >&2; then cp "$log.code" "$log.killed"; fi
if [ -s "$log.code" ]; then
    failed=$(awk '/^failures:$/ { names = "" } /^    [A-Za-z0-9_:]+$/ { names = names $1 "\n" }
        /^test result: FAILED/ { printf "%s", names }' "$log" | sort -u)
    count=$(printf '%s' "$failed" | grep -c . || true)
    say "== why they failed"
    awk '/^---- .* stdout ----$/ { name = $2; lines = 0 } /panicked at/ && name { lines = 3; printf "%s\n", name }
        lines > 0 { print "    " substr($0, 1, 600); lines-- }' "$log" >&2
    grep -a '^error: test failed' "$log" >&2 || true
    df -h . "${TMPDIR:-/tmp}" >&2 || true
    free -m >&2 || true
    if [ "$count" -eq 0 ] || [ "$count" -gt 10 ]; then
        say "$count tests failed"
        exit "$(cat "$log.code")"
    fi
    say "== failed beside the others, run again alone:" $failed
    cargo test --workspace --locked $features --no-fail-fast --lib --test '*' -- --test-threads 1 --exact $failed >"$log" 2>&1 || { cat "$log"; exit 1; }
    passed=$(grep -c '^test .* \.\.\. ok$' "$log" || true)
    if [ "$passed" -lt "$count" ]; then
        cat "$log"
        say "$passed of $count passed alone"
        exit 1
    fi
    say "passed alone, but not beside the others (the machine was slow, or they disturb each other):" $failed
fi
[ ! -s "$log.killed" ] || exit "$(cat "$log.killed")"
phase "the Python package"
sh scripts/test-python.sh
if [ "${BENCH_TEST_FAULTS:-}" = long ]; then
    phase "long fault tests"
    cargo test --workspace --locked --test long -- --nocapture
fi
phase "done"
