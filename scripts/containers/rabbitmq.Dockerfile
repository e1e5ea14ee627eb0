# Stands in for rabbitmq:4.0: the same broker, RABBITMQ_DEFAULT_USER, _PASS and _VHOST and the same data folder.
FROM bench-test/services
ENV HOME=/var/lib/rabbitmq
COPY rabbitmq.sh /usr/local/bin/docker-entrypoint.sh
VOLUME /var/lib/rabbitmq
EXPOSE 5672
ENTRYPOINT ["sh", "/usr/local/bin/docker-entrypoint.sh"]
