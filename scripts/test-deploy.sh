#!/bin/sh
# Tests of the chart, the image's recipe, the compose file, the workflows and the alert rules: lint, render, schemas, policy. No cluster
# and no engine is needed; Python tools of pinned versions go into target/deploy-venv, promtool comes with Debian's Prometheus, and
# both are said first. BENCH_ACCEPT=1 takes changed renderings as the new snapshots.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
venv=target/deploy-venv
need_python_tools "$venv" deploy/tests/requirements.txt
command -v promtool >/dev/null 2>&1 || install_packages prometheus

say "== deploy: linters"
"$venv/bin/hadolint" deploy/Dockerfile
# the stand-ins for the hub's images: a base of ours without a tag, a package manager is not run
"$venv/bin/hadolint" --ignore DL3006 scripts/containers/*.Dockerfile
"$venv/bin/yamllint" --strict --config-file deploy/tests/yamllint.yaml \
    deploy/compose.yaml scripts/containers/compose.yaml deploy/observability deploy/github .github helm/bench-coord/values.yaml helm/bench-coord/Chart.yaml helm/bench-coord/examples
"$venv/bin/shellcheck" --shell=sh --external-sources --source-path=SCRIPTDIR scripts/test-deploy.sh scripts/test-containers.sh scripts/pin-images.sh scripts/sbom.sh scripts/test-glibc.sh install.sh scripts/containers/*.sh
say "== deploy: chart, image, compose, workflows"
PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" -m unittest discover --start-directory deploy/tests --buffer
