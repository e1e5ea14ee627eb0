//! For tests: the real binaries in folders of their own, whole clusters of them, temporary services, a fault proxy.
//!
//! In come nothing but names and settings; out come things that are running and end with their value: `bench` (the binaries in
//! a folder of their own) and `cluster` (several of them), services (`postgres`, `rabbitmq`, `s3`, `prometheus`, `nginx`),
//! what breaks them (`proxy`, `disk`, `troubled_s3`), fakes of memory systems and providers (`fakes`, `provider`), and data
//! (`small`, `beam`). A service that is missing fails the test. Start reading at `bench`, then `cluster`.

pub mod beam;
pub mod bench;
pub mod browser;
pub mod cluster;
pub mod data;
pub mod disk;
pub mod fakes;
pub mod http;
pub mod nginx;
pub mod node;
mod packages;
pub mod ports;
pub mod postgres;
pub mod process;
pub mod prometheus;
pub mod provider;
pub mod proxy;
pub mod python;
pub mod rabbitmq;
pub mod raw_request;
pub mod s3;
pub mod small;
pub mod troubled_s3;

/// Whether this is root, who may do what others need a name space for.
#[must_use]
pub fn is_root() -> bool {
    packages::is_root()
}
