# A container engine for tests: Debian's, started by hand with folders of its own. Sourced by test-containers.sh.

# start_engine FOLDER: exports DOCKER_HOST and DOCKER_CONFIG. The engine of an earlier run that was kept is taken again.
start_engine() {
    folder="$1"
    engine="$folder/engine"
    mkdir -p "$engine"
    export DOCKER_HOST="unix://$engine/docker.sock" DOCKER_CONFIG="$folder/config"
    set --
    command -v dockerd >/dev/null 2>&1 || set -- "$@" docker.io
    command -v iptables >/dev/null 2>&1 || set -- "$@" iptables
    command -v ip >/dev/null 2>&1 || set -- "$@" iproute2
    command -v mmdebstrap >/dev/null 2>&1 || set -- "$@" mmdebstrap
    install_packages "$@"
    need_plugins "$folder"
    if docker info >/dev/null 2>&1; then
        say "using the engine that was kept ($DOCKER_HOST)"
        return 0
    fi
    # what the engine changes for all of the machine, to be put back
    cat /proc/sys/net/ipv4/ip_forward >"$engine/ip_forward"
    iptables -S FORWARD | sed -n 's/^-P FORWARD //p' >"$engine/forward_policy"
    if [ -z "${BENCH_TEST_KEEP:-}" ]; then
        trap 'stop_engine "$engine"' EXIT
        trap 'exit 130' INT TERM
    else
        say "the engine stays: export DOCKER_HOST=$DOCKER_HOST DOCKER_CONFIG=$DOCKER_CONFIG BENCH_TEST_STAND_INS=1"
        say "end it with: sh -c '. scripts/containers/engine.sh && stop_engine $engine'"
    fi
    dockerd --data-root "$engine/data" --exec-root "$engine/exec" --pidfile "$engine/pid" --host "$DOCKER_HOST" \
        --default-ulimit nofile=10000:10000 >"$engine/log" 2>&1 &
    tries=0
    until docker info >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 150 ] || { tail -n 20 "$engine/log" >&2; say "the engine did not start: $engine/log"; exit 1; }
        sleep 0.2
    done
}

# stop_engine ENGINE-FOLDER: ends it, and takes back what it did to the machine: its bridges, chains, policy and forwarding.
stop_engine() {
    [ -s "$1/pid" ] || return 0
    pid=$(cat "$1/pid")
    kill "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do sleep 0.2; done
    # only lines of the engine's: rules of others may have changed meanwhile
    iptables-save | grep -Ev 'DOCKER|docker0|br-[0-9a-f]{12}' | sed "s/^:FORWARD [A-Z]*/:FORWARD $(cat "$1/forward_policy")/" | iptables-restore
    for bridge in $(ip -o link show type bridge | grep -Eo '(docker0|br-[0-9a-f]{12})' | sort -u); do
        ip link delete "$bridge"
    done
    cat "$1/ip_forward" >/proc/sys/net/ipv4/ip_forward
}

# need_plugins FOLDER: Compose v2 and BuildKit's client, unless the docker command has them: Debian 13's, unpacked, not installed.
need_plugins() {
    plugins="$DOCKER_CONFIG/cli-plugins"
    if docker compose version >/dev/null 2>&1 && docker buildx version >/dev/null 2>&1; then
        return 0
    fi
    say "fetching Compose and buildx of Debian 13 into $plugins"
    apt="$1/apt"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$plugins"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(debian_mirror) trixie main" >"$apt/sources.list"
    set -- -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts=/dev/null \
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" -o APT::Sandbox::User=root
    apt-get "$@" update
    (cd "$apt" && apt-get "$@" download docker-compose docker-buildx)
    for deb in "$apt"/*.deb; do
        dpkg-deb -x "$deb" "$apt/unpacked"
    done
    find "$apt/unpacked" -path '*cli-plugins/docker-*' -type f -exec cp {} "$plugins/" \;
    rm -rf "$apt"
}

# debian_mirror: the one that this machine uses.
debian_mirror() {
    mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/*.sources 2>/dev/null | grep -m1 '/debian/*$' || true)
    echo "${mirror:-http://deb.debian.org/debian}"
}
