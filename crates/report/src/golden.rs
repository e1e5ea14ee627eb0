//! The golden report: each test has one of its own and changes in it what it needs.

use bench_proto::summary::Summary;

/// The report as it is stored.
pub(crate) fn report() -> Summary {
    serde_json::from_str(include_str!("../../../proto/golden/report.v4.json")).expect("the golden report is read")
}
