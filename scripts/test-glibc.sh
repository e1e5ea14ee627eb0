#!/bin/sh
# The wheel in bare Debians without Rust: sh scripts/test-glibc.sh dist/*.whl [SUITE...]
#
# For each suite a root with nothing but Python is made of Debian's packages (root, mmdebstrap); the wheel is installed
# there into an empty environment without a network, and README's first command runs. A suite whose glibc is older than
# the wheel says must refuse it, and one that the mirror no longer has is said and left out.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
. scripts/containers/engine.sh
[ "$(id -u)" = 0 ] || { say "roots are made and entered as root"; exit 2; }
wheel="${1:?a wheel}"
shift
[ $# -gt 0 ] || set -- bullseye bookworm trixie
command -v mmdebstrap >/dev/null 2>&1 || install_packages mmdebstrap
# Ubuntu brings the keys of its own packages alone
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || install_packages debian-archive-keyring
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wanted=$(basename "$wheel" | sed -n 's/.*manylinux_2_\([0-9]*\)_.*/\1/p')
[ -n "$wanted" ] || { say "$wheel names no glibc: auditwheel repair does that"; exit 2; }
failed=0 tried=0
for suite in "$@"; do
    if ! mmdebstrap --quiet --variant=minbase --mode=root --include=python3-venv "$suite" "$work/root" "$(debian_mirror)" 2>"$work/why"; then
        say "$suite: left out, it cannot be made here: $(grep -m1 '^E:' "$work/why" || tail -n 1 "$work/why")"
        rm -rf "$work/root"
        continue
    fi
    tried=$((tried + 1))
    cp "$wheel" "$work/root/tmp/"
    cat >"$work/root/tmp/try.sh" <<'T'
set -eu
cd /tmp
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install --quiet --disable-pip-version-check --no-index --no-deps /tmp/*.whl
cd /root
/tmp/venv/bin/bench-coord submit --dataset locomo-sim --preset fair
T
    glibc=$(chroot "$work/root" getconf GNU_LIBC_VERSION | sed 's/glibc 2\.//')
    begun=$(date +%s)
    # a network of its own, in which there is nothing
    if unshare --net chroot "$work/root" env -i HOME=/root PATH=/usr/bin:/bin sh /tmp/try.sh >"$work/out" 2>&1; then
        if [ "$glibc" -lt "$wanted" ]; then
            say "$suite: glibc 2.$glibc took a wheel that says 2.$wanted" && failed=1
        elif grep -q VALID "$work/out"; then
            say "$suite: glibc 2.$glibc, installed and run in $(($(date +%s) - begun)) s"
        else
            say "$suite: no report" && cat "$work/out" && failed=1
        fi
    elif [ "$glibc" -lt "$wanted" ] && grep -q "not a supported wheel" "$work/out"; then
        say "$suite: glibc 2.$glibc, refused by pip as it should be"
    else
        say "$suite: glibc 2.$glibc" && cat "$work/out" && failed=1
    fi
    rm -rf "$work/root"
done
[ "$tried" -gt 0 ] || { say "no suite could be tried"; exit 1; }
exit "$failed"
