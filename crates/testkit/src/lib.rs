//! For tests: the real binaries in folders of their own, whole clusters of them, temporary services, a fault proxy.

pub mod bench;
pub mod cluster;
pub mod http;
mod packages;
pub mod postgres;
pub mod process;
pub mod provider;
pub mod proxy;
pub mod rabbitmq;
