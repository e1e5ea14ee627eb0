# Shared by the scripts: finds what is missing and installs it, saying so first. Sourced, not run.

# say WORDS...: one line to standard error
say() { printf '%s\n' "$*" >&2; }

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

# need_cargo_tool NAME: a subcommand of cargo, built from the registry. Quick to build, as it runs for seconds only.
need_cargo_tool() {
    if cargo "$1" --version >/dev/null 2>&1; then
        return 0
    fi
    if [ -n "${BENCH_NO_INSTALL:-}" ]; then
        say "missing: cargo-$1; BENCH_NO_INSTALL is set, so run 'cargo install --locked cargo-$1' yourself and this again"
        exit 2
    fi
    say "installing with cargo (about 2 minutes): cargo-$1"
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        cargo install --locked --quiet "cargo-$1"
}
