# Shared by the scripts: finds what is missing and installs it, saying so first. Sourced, not run.

# say WORDS...: one line to standard error
say() { printf '%s\n' "$*" >&2; }

# What tests are built with: all features but the allocator of the programs, whose C library takes longer to build than they gain
# by it. Every night, and what is released, has it.
test_features() {
    [ "${BENCH_TEST_FAULTS:-}" = long ] || printf '%s' "--no-default-features --features bench-coord/full,bench-worker/full"
}

# need_tools [NAME...]: a C compiler and linker for the bundled SQLite, zstd and aws-lc; a Rust toolchain; programs that
# are packages of the same name.
need_tools() {
    if ! command -v cargo >/dev/null 2>&1; then
        say "no Rust toolchain: install one from https://rustup.rs (1.94 or newer), then run this again"
        exit 2
    fi
    missing=""
    command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
    done
    install_packages $missing
}

# install_packages NAME...: Debian packages, unless forbidden or not possible.
install_packages() {
    [ $# -gt 0 ] || return 0
    if [ -n "${BENCH_NO_INSTALL:-}" ]; then
        say "missing: $*; BENCH_NO_INSTALL is set, so install them yourself and run this again"
        exit 2
    fi
    if ! command -v apt-get >/dev/null 2>&1; then
        say "missing: $*; no apt-get here, so install them yourself and run this again"
        exit 2
    fi
    sudo=""
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 || { say "missing: $*; run 'apt-get install $*' as root, then this again"; exit 2; }
        sudo="sudo"
    fi
    say "installing with apt-get: $*"
    $sudo apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# need_uv: says where the installer of Python packages is, which takes a twentieth of the time of pip; made when it is not there.
# The tests of the workspace share it (crates/testkit/src/python.rs). Called in the root folder, as all of these.
need_uv() {
    uv="${CARGO_TARGET_DIR:-target}/uv"
    wanted=$(cat scripts/uv.txt)
    if [ "$(cat "$uv/made" 2>/dev/null)" != "$wanted" ]; then
        if ! python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            install_packages python3 python3-venv
        fi
        say "installing with pip into $uv: $wanted"
        python3 -m venv --clear "$uv"
        "$uv/bin/pip" install --quiet --disable-pip-version-check "$wanted"
        printf '%s' "$wanted" >"$uv/made"
    fi
    printf '%s' "$uv/bin/uv"
}

# python_environment FOLDER ARGUMENT...: an environment of its own for Python, with what `uv pip install ARGUMENT...` installs.
python_environment() {
    folder="$1"
    shift
    uv=$(need_uv)
    export UV_CACHE_DIR="${uv%/bin/uv}/cache" UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-${PIP_INDEX_URL:-https://pypi.org/simple}}"
    rm -rf "$folder"
    "$uv" --quiet venv --python "$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)')" "$folder"
    "$uv" --quiet pip install --python "$folder/bin/python" "$@"
}

# need_python_tools FOLDER FILE: what FILE pins, installed into a virtual environment of its own.
need_python_tools() {
    if cmp -s "$2" "$1/installed.txt"; then
        return 0
    fi
    if [ -n "${BENCH_NO_INSTALL:-}" ]; then
        say "missing: the tools of $2; BENCH_NO_INSTALL is set, so install them into the virtual environment $1," \
            "copy $2 to $1/installed.txt and run this again"
        exit 2
    fi
    say "installing with uv into $1:" $(sed -n 's/^\([A-Za-z][^ ]*\).*/\1/p' "$2")
    python_environment "$1" --requirement "$2"
    cp "$2" "$1/installed.txt"
}
