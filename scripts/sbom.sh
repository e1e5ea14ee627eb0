#!/bin/sh
# What is linked into each program, as CycloneDX, into a folder: sh scripts/sbom.sh sbom
set -eu
cd "$(dirname "$0")/.."
out="${1:?a folder}"
# as in deploy/Dockerfile
version=0.5.9
cargo cyclonedx --version 2>/dev/null | grep -q "$version" || cargo install --locked --quiet --version "$version" cargo-cyclonedx
cargo cyclonedx --all --format json --spec-version 1.5 --no-build-deps
mkdir -p "$out"
for bill in coordinator/bench-coord worker/bench-worker crates/sim/bench-sim; do
    mv "$bill.cdx.json" "$out/"
done
# of the libraries: nobody asked for them
find . -path ./target -prune -o -path "./$out" -prune -o -name '*.cdx.json' -exec rm {} +
