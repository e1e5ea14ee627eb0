//! Outages of routes (P39) and what sessions tell of them (P40).

use bench_proto::outage::{OutageEvent, RouteEvidence, SessionEvidence};
use futures::future::join_all;

use super::Fresh;
use crate::Renewal;

const ROUTE: &str = "chat openai gpt-4o-mini";

/// However many find an outage, one row tells of it; one session at a time probes; the end is told, later outages are their own.
pub async fn p39_one_process_opens_an_outage_and_one_probes_it(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let told = |event, words| store.outage("cluster", ROUTE, event, words);
    assert!(store.outages("cluster").await.expect("reads").is_empty());
    let take = |session| OutageEvent::TakeProbe { session, within_us: 60_000_000 };
    assert!(!told(take(1), "").await.expect("answers").0, "there is nothing to probe");

    let suspects = join_all((0..8).map(|_| told(OutageEvent::Suspect { known: 0 }, "503"))).await;
    let opened = suspects.into_iter().filter(|told| told.as_ref().expect("answers").0).count();
    assert_eq!(opened, 1, "one of them opens it");
    let rows = store.outages("cluster").await.expect("reads");
    assert_eq!((rows.len(), rows[0].outage.opening, rows[0].reason.as_str()), (1, 1, "503"));
    assert!(store.outages("local/7").await.expect("reads").is_empty(), "other domains have accounts of their own");

    assert!(!told(take(1), "").await.expect("answers").0, "not before a second has passed");
    assert!(told(OutageEvent::ProbeNow, "").await.expect("answers").0);
    let probes = join_all((1..=8).map(|session| told(take(session), ""))).await;
    let granted: Vec<i64> =
        (1..=8).zip(probes).filter_map(|(session, told)| told.expect("answers").0.then_some(session)).collect();
    let [prober] = granted[..] else { panic!("{granted:?} probe at once") };
    let failed = |session| OutageEvent::ProbeFailed { session, opening: 1, spread: 0 };
    assert!(!told(failed(prober + 1), "x").await.expect("answers").0);
    let (changed, row) = told(failed(prober), "refused").await.expect("answers");
    assert!(changed && row.outage.is_confirmed() && row.reason == "refused", "{row:?}");
    store.held_back("cluster", ROUTE, 3).await.expect("counts");
    store.held_back("cluster", ROUTE, 4).await.expect("counts");

    assert!(told(OutageEvent::ProbeSucceeded { opening: 1 }, "").await.expect("answers").0);
    assert!(!told(OutageEvent::ProbeSucceeded { opening: 1 }, "").await.expect("answers").0);
    let ended = &store.outages("cluster").await.expect("reads")[0];
    assert_eq!((ended.outage.is_open(), ended.held, ended.reason.as_str()), (false, 7, "refused"));
    assert!(!told(OutageEvent::Suspect { known: 0 }, "").await.expect("answers").0, "it has not heard of the last one");
    assert!(told(OutageEvent::Suspect { known: 1 }, "again").await.expect("answers").0);
    let rows = store.outages("cluster").await.expect("reads");
    assert_eq!((rows.len(), rows[0].outage.opening, rows[0].held), (1, 2, 0), "the newest alone");
    assert_eq!(store.outages_since("cluster", 0).await.expect("reads").len(), 2);
    let after = rows[0].now_us + 1_000_000;
    assert_eq!(store.outages_since("cluster", after).await.expect("reads").len(), 1, "the one that lasts");
}

/// The lease of a probe ends with its session: whoever was killed while it probed keeps nobody waiting.
pub async fn p39_a_session_that_has_ended_probes_no_more(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let told = |event| store.outage("cluster", ROUTE, event, "");
    let killed = store.open_session("w1", "cluster", "{}").await.expect("opens");
    let take = |session| OutageEvent::TakeProbe { session, within_us: 140_000_000 };
    assert!(told(OutageEvent::Suspect { known: 0 }).await.expect("answers").0);
    assert!(told(OutageEvent::ProbeNow).await.expect("answers").0);
    assert!(told(take(killed.0)).await.expect("answers").0);
    assert!(!told(take(2)).await.expect("answers").0, "it lives, for all that is known");
    assert!(told(OutageEvent::ProbeNow).await.expect("answers").0);
    assert!(!told(take(2)).await.expect("answers").0, "asking does not put a second probe beside it");
    store.end_session(killed).await.expect("ends");
    assert!(told(take(2)).await.expect("answers").0);
    let late = OutageEvent::ProbeFailed { session: killed.0, opening: 1, spread: 0 };
    assert!(!told(late).await.expect("answers").0, "what it may still say is heard no more");
}

/// Evidence rides on a renewal, and ages.
pub async fn p39_sessions_tell_what_they_know_of_routes(fresh: &Fresh) {
    let store = fresh.store.as_ref();
    let session = store.open_session("w1", "cluster", "{}").await.expect("opens");
    let route = RouteEvidence { route: ROUTE.to_owned(), failures: 5, failing_ms: Some(2_000), ..Default::default() };
    let evidence = SessionEvidence { v: 1, routes: vec![route], ..SessionEvidence::default() };
    let renewed = store.renew_session(session, Some(&evidence.to_json())).await.expect("renews");
    assert!(matches!(renewed, Renewal::Alive(_)), "{renewed:?}");
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    let _tells_nothing_new = store.renew_session(session, None).await.expect("renews");
    let rows = store.open_sessions("cluster").await.expect("reads");
    let told = rows[0].evidence.of_route(ROUTE).expect("is told");
    assert!(told.failures == 5 && told.failing_ms.is_some_and(|age| age >= 2_020), "{told:?}");
}
