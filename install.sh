#!/bin/sh
# Installs bench-coord, bench-worker and bench-sim from a published archive, without a toolchain:
#
#   curl -fsSL https://github.com/bench-coord/bench-coord/releases/latest/download/install.sh | sh
#
# What it does, and says as it goes: it finds out which archive this machine needs, downloads it and the list of
# checksums of the same release, compares the two, unpacks the programs into $BENCH_INSTALL_DIR (~/.local/bin) and their
# manual pages and completions below ~/.local/share. It asks for no password, changes no other file and never runs what
# does not fit its checksum.
#
#   BENCH_INSTALL_VERSION   a version [default: the one that this script was published with]
#   BENCH_INSTALL_DIR       where programs go [default: ~/.local/bin]
#   BENCH_INSTALL_FROM      where releases lie: a mirror with the folders vVERSION [default: the project's on GitHub]
#   BENCH_INSTALL_DRY_RUN   when set: says what would be done, and downloads nothing
set -eu

releases="${BENCH_INSTALL_FROM:-https://github.com/bench-coord/bench-coord/releases/download}"
# the version that this script was published with
version="${BENCH_INSTALL_VERSION:-0.2.0}"
folder="${BENCH_INSTALL_DIR:-$HOME/.local/bin}"
share="${XDG_DATA_HOME:-$HOME/.local/share}"
programs="bench-coord bench-worker bench-sim"

say() { printf '%s\n' "$*" >&2; }
stop() { say "error: $*"; exit 1; }

target() {
    case "$(uname -s)/$(uname -m)" in
        Linux/x86_64 | Linux/amd64) cpu=x86_64 ;;
        Linux/aarch64 | Linux/arm64) cpu=aarch64 ;;
        Darwin/x86_64) echo x86_64-apple-darwin; return ;;
        Darwin/arm64) echo aarch64-apple-darwin; return ;;
        *) stop "there is no archive for $(uname -s) on $(uname -m); with a Rust toolchain: cargo install --locked --git https://github.com/bench-coord/bench-coord bench-coord" ;;
    esac
    # glibc says its version; musl, which the programs are not built for, does not
    libc="$(getconf GNU_LIBC_VERSION 2>/dev/null || true)"
    case "$libc" in
        "glibc 2."*) ;;
        *) stop "the programs need glibc 2.28 or newer, and this machine has another C library; the image runs anywhere: docs/DEPLOY.md" ;;
    esac
    minor="${libc#glibc 2.}"
    [ "${minor%%.*}" -ge 28 ] || stop "the programs need glibc 2.28 or newer, and this machine has ${libc#glibc }"
    echo "$cpu-unknown-linux-gnu"
}

download() {
    # what is asked for over TLS comes over TLS: a redirect could change archive and checksums alike
    case "$1" in
        [Hh][Tt][Tt][Pp][Ss]://*) redirects="=https" ;;
        *) redirects="=http,https" ;;
    esac
    if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --proto-redir "$redirects" --retry 3 --output "$2" "$1"
    elif ! command -v wget >/dev/null 2>&1; then
        stop "neither curl nor wget is here"
    elif [ "$redirects" != "=https" ]; then
        wget -q --tries=3 -O "$2" "$1"
    else
        # it has no such option: where it was led stands in the headers that it met, beside what it complains of
        wget -q --server-response --tries=3 -O "$2" "$1" 2>"$2.headers" && ! led_off "$2.headers" || {
            grep -v '^  ' "$2.headers" >&2
            false
        }
    fi || stop "$1 cannot be downloaded"
}

# led_off HEADERS: whether one of them leads to a place without TLS
led_off() {
    grep -i '^ *location: *[a-z][a-z0-9+.-]*:' "$1" | grep -iqv '^ *location: *https:'
}

checksum() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum "$1"
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 "$1"
    else
        stop "neither sha256sum nor shasum is here, and what cannot be checked is not installed"
    fi | cut -d ' ' -f 1
}

main() {
    # not in a substitution of its own: its error has to end this script
    target="$(target)" || exit 1
    name="bench-coord-$version-$target"
    url="$releases/v$version"
    say "bench-coord $version for $target"
    say "  from     $url/$name.tar.gz"
    say "  into     $folder (and manual pages and completions below $share)"
    if [ -n "${BENCH_INSTALL_DRY_RUN:-}" ]; then
        say "nothing was done: BENCH_INSTALL_DRY_RUN is set"
        return
    fi
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    download "$url/SHA256SUMS" "$work/SHA256SUMS"
    download "$url/$name.tar.gz" "$work/$name.tar.gz"
    expected="$(awk -v file="$name.tar.gz" '$2 == file { print $1 }' "$work/SHA256SUMS")"
    [ -n "$expected" ] || stop "SHA256SUMS of version $version does not list $name.tar.gz: it has no archive for this machine"
    found="$(checksum "$work/$name.tar.gz")"
    [ "$found" = "$expected" ] ||
        stop "$name.tar.gz has the checksum $found, and SHA256SUMS says $expected: nothing was installed"
    say "  checked  sha256 $found"
    tar -xzf "$work/$name.tar.gz" -C "$work"
    "$work/$name/bench-coord" version >/dev/null || stop "bench-coord does not run on this machine: nothing was installed"
    mkdir -p "$folder"
    for program in $programs; do
        # into a file beside it, and then over it: a program that is running goes on with the old one
        cp "$work/$name/$program" "$folder/.$program.new"
        chmod 755 "$folder/.$program.new"
        mv -f "$folder/.$program.new" "$folder/$program"
    done
    put "$work/$name/man/man1" "$share/man/man1" '*.1'
    put "$work/$name/completions" "$share/bash-completion/completions" bench-coord.bash bench-coord
    put "$work/$name/completions" "$share/zsh/site-functions" _bench-coord
    put "$work/$name/completions" "$share/fish/vendor_completions.d" bench-coord.fish
    say "  done     $("$folder/bench-coord" version)"
    case ":$PATH:" in
        *":$folder:"*) ;;
        *) say "$folder is not in PATH: add it, or call $folder/bench-coord" ;;
    esac
    say "first run, no key and no download:  bench-coord submit --dataset locomo-sim --preset fair"
}

# put FROM INTO PATTERN [NAME]: files that are pleasant to have; where they cannot be written is no reason to stop
put() {
    mkdir -p "$2" 2>/dev/null || { say "  left out $2: cannot be written"; return 0; }
    # shellcheck disable=SC2086 # the pattern names several files
    for file in "$1"/$3; do
        cp "$file" "$2/${4:-$(basename "$file")}" || { say "  left out $2: cannot be written"; return 0; }
    done
}

# last, so that a download that was cut off runs nothing
main
