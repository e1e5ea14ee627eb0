#!/bin/sh
# The Python package in a notebook's kernel and with frames: all of python/tests. About two minutes the first time, half a minute
# after that; environments stay below target/python-side. `scripts/test.sh` calls it.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
need_tools
PYTHON="${PYTHON:-python3}"
ROOT="${CARGO_TARGET_DIR:-target}/python-side"

# environment NAME PACKAGE...: one with these packages, made anew when they change; says its Python
environment() {
    folder="$ROOT/$1"
    shift
    wanted="$("$PYTHON" --version) $*"
    if [ "$(cat "$folder/made" 2>/dev/null)" != "$wanted" ]; then
        if [ -n "${BENCH_NO_INSTALL:-}" ]; then
            say "missing: $*; BENCH_NO_INSTALL is set, so make a virtual environment $folder with them, write '$wanted' into" \
                "$folder/made and run this again"
            exit 2
        fi
        say "installing with uv into $folder: $*"
        mkdir -p "$ROOT"
        python_environment "$folder" "$@" >&2
        printf '%s' "$wanted" >"$folder/made"
    fi
    printf '%s' "$folder/bin/python"
}

say "== program"
# as the tests of the workspace have it: after them there is nothing to build
# shellcheck disable=SC2046
cargo test --workspace --locked --quiet $(test_features) --no-run --test help
TARGET="$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/debug"
export BENCH_TEST_PROGRAMS="$TARGET" PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1
say "== notebooks and frames"
python=$(environment notebooks pytest==8.4.2 ipykernel==7.4.0 nbclient==0.11.0 nbformat==5.11.1 \
    pandas==3.1.1 pyarrow==26.0.1 polars==2.1.0)
"$python" -m pytest -q -p no:cacheprovider python/tests
