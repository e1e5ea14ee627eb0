//! For tests: the real binaries in folders of their own, temporary services, a fault proxy.

pub mod bench;
pub mod postgres;
pub mod proxy;
pub mod rabbitmq;
