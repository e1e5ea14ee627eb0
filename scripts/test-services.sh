#!/bin/sh
# Tests of the RabbitMQ and Postgres backends against private servers of their own (temporary folders, free ports). Missing
# Debian packages are installed when this runs as root, and said first. They join scripts/test.sh together with the verbs
# that use them.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
need_tools
cargo test --locked --package bench-store --features postgres
cargo test --locked --package bench-queue --features amqp
