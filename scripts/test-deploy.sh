#!/bin/sh
# Tests of the chart, the image's recipe, the compose file and the workflows: lint, render, schemas, policy. No cluster and no
# engine is needed; Python tools of pinned versions go into target/deploy-venv, and that is said first. BENCH_ACCEPT=1 takes
# changed renderings as the new snapshots.
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

say "== deploy: linters"
"$venv/bin/hadolint" deploy/Dockerfile
"$venv/bin/yamllint" --strict --config-file deploy/tests/yamllint.yaml \
    deploy/compose.yaml deploy/observability deploy/github helm/bench-coord/values.yaml helm/bench-coord/Chart.yaml helm/bench-coord/examples
"$venv/bin/shellcheck" --shell=sh --external-sources --source-path=SCRIPTDIR scripts/test-deploy.sh
say "== deploy: chart, image, compose, workflows"
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" -m unittest discover --start-directory deploy/tests --buffer
