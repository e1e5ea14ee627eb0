#!/bin/sh
# The first start makes the cluster, its user and its database, and only then listens on the network, as the original does.
set -eu
as() { setpriv --reuid=postgres --regid=postgres --clear-groups "$@"; }
chown postgres:postgres "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    secret=$(mktemp)
    printf '%s' "$POSTGRES_PASSWORD" >"$secret"
    chown postgres "$secret"
    as initdb --pgdata="$PGDATA" --username="$POSTGRES_USER" --pwfile="$secret" --auth-host=scram-sha-256 --auth-local=trust \
        --encoding=UTF8 --locale=C.UTF-8 >/dev/null
    rm "$secret"
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    as pg_ctl --pgdata="$PGDATA" --wait --options="-c listen_addresses='' -c unix_socket_directories=/tmp" start >/dev/null
    as createdb --host=/tmp --username="$POSTGRES_USER" "$POSTGRES_DB"
    as pg_ctl --pgdata="$PGDATA" --wait --mode=fast stop >/dev/null
fi
exec setpriv --reuid=postgres --regid=postgres --clear-groups \
    postgres -D "$PGDATA" -c "listen_addresses=*" -c unix_socket_directories=/tmp
