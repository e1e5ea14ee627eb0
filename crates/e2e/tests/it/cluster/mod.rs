//! Runs over a cluster: real coordinators and workers, RabbitMQ and Postgres of their own, and faults in the middle.

mod broker;
mod coordinators;
mod failover;
mod half_open;
mod latency;
mod memory_servers;
mod network;
mod outages;
mod policy;
mod pooler;
mod refusals;
mod restore;
mod results;
mod roles;
mod scale;
mod store;
mod undisturbed;
mod verbs;
mod workers;
