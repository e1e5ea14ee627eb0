# Images that stand in for the pinned ones where no hub can be reached, made of Debian's packages: bench-test/NAME, which compose.yaml
# beside this file and the build's arguments name. They hold the same programs in Debian's versions, and entry points that understand
# the variables which deploy/compose.yaml sets; nothing else of the originals. Sourced by test-containers.sh; what is made is kept in
# the engine's folder.
rust_image="bench-test/rust:$(sed -n 's/^channel = "\(.*\)"$/\1/p' rust-toolchain.toml)"

# make_images FOLDER
make_images() {
    made="$1/rootfs"
    mkdir -p "$made"
    has bench-test/debian || {
        root bookworm "$made/slim.tar" ca-certificates
        docker import --change 'CMD ["bash"]' "$made/slim.tar" bench-test/debian >/dev/null
    }
    # what the original has of buildpack-deps that matters here, and this machine's toolchain and authorities
    has "$rust_image" || {
        root bookworm "$made/rust.tar" ca-certificates,gcc,g++,libc6-dev,make,pkg-config
        docker import "$made/rust.tar" bench-test/rust-base >/dev/null
        rm -rf "$made/rust" && mkdir -p "$made/rust/usr/local/rustup" "$made/rust/usr/local/cargo"
        toolchain=$(rustc --print sysroot)
        cp -a "$toolchain" "$made/rust/usr/local/rustup/toolchain"
        rm -rf "$made/rust/usr/local/rustup/toolchain/share"
        ln -s ../rustup/toolchain/bin "$made/rust/usr/local/cargo/bin"
        mkdir -p "$made/rust/etc/ssl/certs"
        cp -L "${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}" "$made/rust/etc/ssl/certs/ca-certificates.crt"
        cat >"$made/rust/Dockerfile" <<'D'
FROM bench-test/rust-base
ENV CARGO_HOME=/usr/local/cargo RUSTUP_HOME=/usr/local/rustup PATH=/usr/local/cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
COPY usr /usr
COPY etc /etc
D
        docker build --quiet --tag "$rust_image" "$made/rust" >/dev/null
        rm -rf "$made/rust"
    }
    has bench-test/services || {
        root trixie "$made/services.tar" ca-certificates,postgresql-17,rabbitmq-server,prometheus
        docker import "$made/services.tar" bench-test/services >/dev/null
    }
    for name in postgres rabbitmq prometheus; do
        docker build --quiet --tag "bench-test/$name" --file "scripts/containers/$name.Dockerfile" scripts/containers >/dev/null
    done
}

# has IMAGE
has() { docker image inspect "$1" >/dev/null 2>&1; }

# root SUITE FILE PACKAGES: a Debian root as a tar file, unless it is there
root() {
    [ -f "$2" ] && return 0
    say "making $2 ($1: $3)"
    mmdebstrap --quiet --format=tar --variant=minbase --mode=root --include="$3" "$1" "$2.part" "$(debian_mirror)" && mv "$2.part" "$2"
}
