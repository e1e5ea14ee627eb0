# Stands in for the image rabbitmq with Debian's RabbitMQ 4.0: RABBITMQ_DEFAULT_USER, _PASS and _VHOST and the same data folder.
FROM bench-test/services
ENV HOME=/var/lib/rabbitmq
COPY rabbitmq.sh /usr/local/bin/docker-entrypoint.sh
VOLUME /var/lib/rabbitmq
EXPOSE 5672
ENTRYPOINT ["sh", "/usr/local/bin/docker-entrypoint.sh"]
