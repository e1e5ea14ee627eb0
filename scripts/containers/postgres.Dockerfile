# Stands in for the image postgres with Debian's PostgreSQL 17: POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB and the same data folder.
FROM bench-test/services
ENV PATH=/usr/lib/postgresql/17/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin PGDATA=/var/lib/postgresql/data
COPY postgres.sh /usr/local/bin/docker-entrypoint.sh
RUN install -d -o postgres -g postgres -m 700 "$PGDATA"
VOLUME /var/lib/postgresql/data
STOPSIGNAL SIGINT
EXPOSE 5432
ENTRYPOINT ["sh", "/usr/local/bin/docker-entrypoint.sh"]
