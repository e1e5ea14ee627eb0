#!/bin/sh
# Builds bench-coord and runs the main job: 200 generated LoCoMo-shaped questions, no key, no service, no download.
# Further arguments go to `submit`; a second call finds everything built.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
need_tools
if [ $# -eq 0 ]; then
    set -- submit --dataset locomo-sim --preset fair
fi
exec cargo run --quiet --profile demo --package bench-coord --no-default-features --bin bench-coord -- "$@"
