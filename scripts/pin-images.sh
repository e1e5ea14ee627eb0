#!/bin/sh
# Writes the digests that tags stand for today into deploy/compose.yaml, deploy/Dockerfile and .github/workflows/release.yml (NAME:TAG
# becomes NAME:TAG@sha256:…, and what is pinned is pinned anew), and takes what is pinned from the list of exceptions of
# deploy/tests/test_files.py. Asks the registries (docker buildx); without one in reach nothing is changed. A test refuses images that
# are neither pinned nor listed.
#
#   sh scripts/pin-images.sh --check    # changes nothing: says which tags stand for another digest by now (then exit 1)
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
case "${1:-}" in
    "") check="" ;;
    --check) check=1 ;;
    *) say "usage: sh scripts/pin-images.sh [--check]"; exit 2 ;;
esac
set -- deploy/compose.yaml deploy/Dockerfile .github/workflows/release.yml
# what has a line of its own, and what is pinned anywhere in a line
named=$({
    sed -nE 's/^ +image: ([a-z][^ $]*)$/\1/p; s/^ARG [A-Z]+_IMAGE=([^ ]+)$/\1/p' "$@"
    grep -Eoh '[a-z][a-z0-9./_-]*(:[A-Za-z0-9_.-]+)?@sha256:[0-9a-f]{64}' "$@" || true
} | sort -u)
images=$(printf '%s\n' "$named" | sed 's/@.*//' | sort -u)
pins=$(mktemp)
trap 'rm -f "$pins"' EXIT
for image in $images; do
    # the digest of the list of all platforms
    digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}') ||
        { say "$image: its registry cannot be reached from here; nothing was changed"; exit 4; }
    case "$digest" in
        sha256:*) [ "${#digest}" = 71 ] || { say "$image: '$digest' is no digest; nothing was changed"; exit 4; } ;;
        *) say "$image: '$digest' is no digest; nothing was changed"; exit 4 ;;
    esac
    echo "$image $digest" >>"$pins"
done
other=0
while read -r image digest; do
    if [ -n "$check" ]; then
        # an image may be named at several places, and stay behind at one of them
        for pinned in $(printf '%s\n' "$named" | awk -F@ -v image="$image" '$1 == image'); do
            [ "$pinned" = "$image@$digest" ] || { say "$pinned: the tag stands for $digest by now"; other=1; }
        done
        continue
    fi
    quoted=$(printf '%s' "$image" | sed 's/[.[\*^$]/\\&/g')
    sed -E -i "s#^( +image: |ARG [A-Z]+_IMAGE=)$quoted\$#\\1$image@$digest#; s#(^|[ =])$quoted@sha256:[0-9a-f]{64}#\\1$image@$digest#g" "$@"
    sed -i "\\#^        \"$quoted\",\$#d" deploy/tests/test_files.py
    say "$image $digest"
done <"$pins"
exit "$other"
