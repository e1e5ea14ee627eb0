//! Faults on purpose: the same for equal requests, marked, never sent.

use std::time::{Duration, Instant};

use bench_meter::{Ended, FaultKind, Faults, MeterSettings, StoredReply};

use crate::{
    ledger::meter,
    scripted::{Scripted, exchange, reply, request},
};

fn with(faults: &str) -> MeterSettings {
    let slow = Duration::from_millis(120);
    MeterSettings { faults: Faults::parse(faults).expect(faults), fault_seed: 7, slow, ..MeterSettings::default() }
}

fn embedding(n: usize) -> Vec<u8> {
    request("/m/run-1/v1/embeddings", "", format!("{{\"model\":\"m\",\"input\":\"{n}\"}}").as_bytes())
}

#[tokio::test]
async fn a_status_on_purpose_is_told_as_a_provider_would_and_marked() {
    for (faults, status, code) in [("429=1", 429, "rate_limit_exceeded"), ("503=1", 503, "meter_fault")] {
        let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", "{}")).await;
        let meter = meter(&upstream.base(), with(faults)).await;
        let got = exchange(meter.address, &embedding(0)).await;
        assert_eq!((got.status, got.json()["error"]["code"].as_str()), (status, Some(code)));
        let told = meter.ledger.only().await;
        assert_eq!((told.fault, told.ended), (Some(FaultKind::Status(status)), Ended::Refused(status)));
        assert_eq!((meter.ledger.seen().sent, upstream.requests().len(), told.usage), (0, 0, None));
    }
}

#[tokio::test]
async fn slow_is_later_and_whole() {
    let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", "{}")).await;
    let meter = meter(&upstream.base(), with("slow=1")).await;
    let begun = Instant::now();
    assert_eq!(exchange(meter.address, &embedding(0)).await.status, 200);
    assert!(begun.elapsed() >= Duration::from_millis(120));
    let told = meter.ledger.only().await;
    assert_eq!((told.fault, told.ended), (Some(FaultKind::Slow), Ended::Complete));
    assert!(told.latency < Duration::from_millis(120), "the provider was not slow: {:?}", told.latency);
}

#[tokio::test]
async fn equal_runs_meet_equal_faults_and_repeats_may_pass() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", "{}")).await;
        let meter = meter(&upstream.base(), with("429=0.3,500=0.2")).await;
        let mut met = Vec::new();
        for n in 0..30 {
            let first = exchange(meter.address, &embedding(n)).await.status;
            let second = exchange(meter.address, &embedding(n)).await.status;
            met.push((first, second));
        }
        assert!(met.iter().any(|met| met.0 != 200 && met.1 == 200), "{met:?}");
        assert!(met.iter().any(|met| met.0 == 429) && met.iter().any(|met| met.0 == 500), "{met:?}");
        runs.push(met);
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test]
async fn stored_replies_change_nothing_of_the_faults_that_equal_runs_meet() {
    let mut runs = Vec::new();
    for is_stored in [false, true] {
        let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", "{}")).await;
        let meter = meter(&upstream.base(), with("429=0.3,500=0.2,slow=0.4")).await;
        if is_stored {
            meter.ledger.store(StoredReply::json("{}".into()));
        }
        let mut met = Vec::new();
        for n in 0..30 {
            met.push(exchange(meter.address, &embedding(n)).await.status);
        }
        let faults: Vec<_> = meter.ledger.settled(30).await.into_iter().map(|told| told.fault).collect();
        assert!(faults.contains(&Some(FaultKind::Slow)), "one from the store is slow too: {faults:?}");
        assert!(met.contains(&429) && met.contains(&500) && met.contains(&200), "{met:?}");
        assert_eq!(upstream.requests().is_empty(), is_stored);
        runs.push(met);
    }
    assert_eq!(runs[0], runs[1]);
}
