# Stands in for the image prom/prometheus with Debian's Prometheus 2.53: the same settings file, the same rules, the same user.
FROM bench-test/services
RUN install -d -o nobody -g nogroup /prometheus
USER 65534
WORKDIR /prometheus
EXPOSE 9090
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
