#!/bin/sh
# Writes the digests that tags stand for today into deploy/compose.yaml and deploy/Dockerfile (NAME:TAG becomes NAME:TAG@sha256:…), and
# takes what is pinned from the list of exceptions of deploy/tests/test_files.py. Asks the registries (docker buildx); without one in
# reach nothing is changed. Run it again to move to newer images of the same tags. A test refuses images that are neither pinned nor
# listed.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib.sh
set -- deploy/compose.yaml deploy/Dockerfile
images=$(sed -nE 's/^ +image: ([a-z][^ $]*)$/\1/p; s/^ARG [A-Z]+_IMAGE=([^ ]+)$/\1/p' "$@" | sed 's/@.*//' | sort -u)
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
while read -r image digest; do
    quoted=$(printf '%s' "$image" | sed 's/[.[\*^$]/\\&/g')
    sed -E -i "s#^( +image: |ARG [A-Z]+_IMAGE=)$quoted(@sha256:[0-9a-f]+)?\$#\\1$image@$digest#" "$@"
    sed -i "\\#^        \"$quoted\",\$#d" deploy/tests/test_files.py
    say "$image $digest"
done <"$pins"
