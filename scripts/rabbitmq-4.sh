#!/bin/sh
# Runs the tests of the queue against RabbitMQ 4 of Debian 13, in a folder of its own: `target/rabbitmq-4` (about 220 MB, made
# once). Needs root for chroot. The machine's own RabbitMQ is not touched.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
need_tools
[ "$(id -u)" = 0 ] || { say "needs root: chroot and mmdebstrap"; exit 2; }
root="$PWD/target/rabbitmq-4"
if [ ! -x "$root/usr/lib/rabbitmq/bin/rabbitmq-server" ]; then
    command -v mmdebstrap >/dev/null 2>&1 || install_packages mmdebstrap
    mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | head -n 1)
    say "making $root from Debian 13"
    rm -rf "$root"
    mkdir -p "$(dirname "$root")"
    mmdebstrap --quiet --variant=minbase --mode=root --include=rabbitmq-server,ca-certificates trixie "$root" ${mirror:+"$mirror"}
fi
unmount() { for place in dev sys proc; do umount "$root/$place" 2>/dev/null || true; done; }
trap unmount EXIT
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
mount --bind /dev "$root/dev"
BENCH_TEST_RABBITMQ_ROOT="$root" cargo test --locked --workspace --test amqp
