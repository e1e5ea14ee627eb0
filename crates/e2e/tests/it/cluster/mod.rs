//! Runs over a cluster: real coordinators and workers, RabbitMQ and Postgres of their own, and faults in the middle.

mod undisturbed;
