#!/bin/sh
# The image is built from its Dockerfile and the compose file comes up: deploy/tests/containers holds what is then tried. Slow (a
# release build and ten minutes); `make test-deploy` runs it after the quick tests.
#
# An engine that answers (`docker info`) is used as it is, with the official images. Without one (or with BENCH_TEST_OWN_ENGINE=1),
# and as root, an engine of our own is started, which is gone afterwards with everything that it did to the machine's network; images
# made of Debian's packages (scripts/containers/) then stand in for the official ones, because no hub may be in reach.
# BENCH_TEST_KEEP=1 leaves that engine running and says how to use it and how to end it: with BENCH_TEST_STAND_INS=1, for it has no
# official images. What was built stays below target/containers: the second time takes minutes.
# BENCH_TEST_PROFILE=demo builds with that profile of Cargo.toml instead of `release`: in a third of the time.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/containers/engine.sh
. scripts/containers/images.sh
export DOCKER_BUILDKIT=1
work="$PWD/target/containers"
venv=target/deploy-venv
mkdir -p "$work"

if [ -z "${BENCH_TEST_OWN_ENGINE:-}${BENCH_TEST_STAND_INS:-}" ] && docker info >/dev/null 2>&1; then
    say "using the engine that is running, and the official images"
    network=default
    set --
else
    [ "$(id -u)" = 0 ] || { say "no container engine answers; as root this script starts one of its own"; exit 2; }
    start_engine "$work"
    make_images "$work"
    # the engine's own network may have no way out, and the build fetches crates
    network=host
    export BENCH_TEST_STAND_INS=1
    set -- --build-arg BUILD_IMAGE="$rust_image" --build-arg RUNTIME_IMAGE=bench-test/debian
fi
docker compose version >/dev/null || { say "Compose v2 is missing (docker compose)"; exit 2; }

say "== containers: building the image"
docker build --network="$network" --file deploy/Dockerfile --build-arg REVISION="$(git rev-parse HEAD 2>/dev/null || echo unknown)" \
    --build-arg CARGO_PROFILE="${BENCH_TEST_PROFILE:-release}" "$@" \
    --tag bench-coord:local .
need_python_tools "$venv" deploy/tests/requirements.txt
say "== containers: image, compose, faults"
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -m unittest discover --verbose --start-directory deploy/tests/containers
