#!/bin/sh
# The broker's own variables for the first user are read by itself from its settings file.
set -eu
cat >/etc/rabbitmq/rabbitmq.conf <<C
default_user = $RABBITMQ_DEFAULT_USER
default_pass = $RABBITMQ_DEFAULT_PASS
default_vhost = $RABBITMQ_DEFAULT_VHOST
loopback_users = none
log.console = true
C
chown -R rabbitmq:rabbitmq /var/lib/rabbitmq /etc/rabbitmq
exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups /usr/lib/rabbitmq/bin/rabbitmq-server
