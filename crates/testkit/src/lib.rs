//! Services and faults for tests.

pub mod proxy;
pub mod rabbitmq;
