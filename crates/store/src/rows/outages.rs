//! Outages of routes as stored (P39).

use bench_proto::outage::Outage;

/// An outage of a route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutageRow {
    /// [`bench_proto::outage::RouteKey::to_text`].
    pub route: String,
    /// How it stands.
    pub outage: Outage,
    /// Tasks that were put off because of it.
    pub held: i64,
    /// The last words about it.
    pub reason: String,
    /// The store's clock when this was read, in microseconds since 1970.
    pub now_us: i64,
}
