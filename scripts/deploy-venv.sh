#!/bin/sh
# Python tools of the deployment's tests in pinned versions, in target/deploy-venv; what is installed is said first.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
venv=target/deploy-venv
wanted=deploy/tests/requirements.txt

if ! python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    install_packages python3 python3-venv
fi
if ! cmp -s "$wanted" "$venv/installed.txt"; then
    if [ -n "${BENCH_NO_INSTALL:-}" ]; then
        say "missing: the tools of $wanted; BENCH_NO_INSTALL is set, so install them into $venv yourself and run this again"
        exit 2
    fi
    say "installing with pip into $venv: $(grep -v '^#' "$wanted" | tr '\n' ' ')"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$wanted"
    cp "$wanted" "$venv/installed.txt"
fi
