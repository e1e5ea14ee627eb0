//! Ends that are none: a provider that breaks off, is silent or is not there, a client that leaves, a meter that stops.

use std::time::{Duration, Instant};

use bench_meter::{Ended, MeterSettings, Upstream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

use crate::{
    ledger::{meter, meter_to, real_key},
    scripted::{STREAM, Scripted, Step, chunk, exchange, reply, request},
};

const BODY: &[u8] = br#"{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"hello world"}]}"#;
const CHAT: &str = "/m/run-1/v1/chat/completions";
const WORDS: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"hello world\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";

fn say(text: impl Into<String>) -> Step {
    Step::Say(text.into().into_bytes())
}

fn is_cut(ended: &Ended) -> bool {
    matches!(ended, Ended::CutByProvider(_))
}

/// Sends a request and leaves when so many bytes have come.
async fn leave_after(meter: std::net::SocketAddr, text: &[u8], bytes: usize) {
    let mut stream = TcpStream::connect(meter).await.expect("connects");
    stream.write_all(text).await.expect("writes");
    let mut buffer = vec![0; bytes];
    stream.read_exact(&mut buffer).await.expect("reads");
}

#[tokio::test]
async fn a_provider_that_breaks_off_is_a_cut_for_the_client_too() {
    for (steps, has_status) in [
        (vec![say(format!("{STREAM}{}", chunk(WORDS)))], true),
        (vec![say(format!("{STREAM}{}", chunk(&WORDS[..20])))], true),
        (
            vec![say("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{\"choices\":")],
            true,
        ),
        (vec![say("")], false),
        (vec![say("HTTP/1.1 200 OK\r\ncontent-ty")], false),
    ] {
        let upstream = Scripted::start(steps).await;
        let meter = meter(&upstream.base(), MeterSettings::default()).await;
        let got = exchange(meter.address, &request(CHAT, "", BODY)).await;
        assert_eq!(got.status, if has_status { 200 } else { 502 });
        if !has_status {
            assert_eq!(got.json()["error"]["code"], "provider_cut");
        }
        let told = meter.ledger.only().await;
        assert!(is_cut(&told.ended), "{:?}", told.ended);
        assert_eq!((told.status, meter.ledger.seen().sent), (if has_status { 200 } else { 0 }, 1));
    }
}

#[tokio::test]
async fn words_of_a_cut_stream_are_counted() {
    let upstream = Scripted::start(vec![say(format!("{STREAM}{}", chunk(WORDS)))]).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let got = exchange(meter.address, &request(CHAT, "", BODY)).await;
    assert_eq!(got.body, WORDS.as_bytes());
    let told = meter.ledger.only().await;
    let usage = told.usage.expect("counted");
    assert_eq!((usage.prompt, usage.completion, told.counted_here), (9, 2, true));
}

#[tokio::test]
async fn a_stream_that_ends_before_its_reply_or_says_that_it_failed_is_cut() {
    let failed = "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n";
    for (events, why) in [(WORDS, "before the reply did"), (failed, "overloaded")] {
        let upstream = Scripted::start(vec![say(format!("{STREAM}{}0\r\n\r\n", chunk(events)))]).await;
        let meter = meter(&upstream.base(), MeterSettings::default()).await;
        let got = exchange(meter.address, &request(CHAT, "", BODY)).await;
        assert_eq!(got.body, events.as_bytes());
        let told = meter.ledger.only().await;
        assert!(matches!(&told.ended, Ended::CutByProvider(cause) if cause.contains(why)), "{:?}", told.ended);
    }
}

#[tokio::test]
async fn a_cut_behind_the_end_of_a_stream_costs_nothing_more() {
    let upstream = Scripted::start(vec![say(format!("{STREAM}{}", chunk(&format!("{WORDS}{END}"))))]).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    exchange(meter.address, &request(CHAT, "", BODY)).await;
    let told = meter.ledger.only().await;
    assert_eq!(
        (told.ended, told.counted_here, told.usage.map(|usage| usage.prompt)),
        (Ended::Complete, false, Some(9))
    );
}

#[tokio::test]
async fn silence_has_an_end() {
    let short = Duration::from_millis(80);
    let base = |upstream: &Scripted| {
        let mut to = Upstream::new(upstream.base(), real_key());
        (to.idle, to.first_byte) = (short, short);
        to
    };
    let waiting = Scripted::start(vec![Step::Wait(Duration::from_secs(60))]).await;
    let meter = meter_to(base(&waiting), MeterSettings::default()).await;
    let got = exchange(meter.address, &request(CHAT, "", BODY)).await;
    assert_eq!((got.status, got.json()["error"]["code"].as_str()), (504, Some("provider_timeout")));
    assert!(is_cut(&meter.ledger.only().await.ended));

    let halting =
        Scripted::start(vec![say(format!("{STREAM}{}", chunk(WORDS))), Step::Wait(Duration::from_secs(60))]).await;
    let meter = meter_to(base(&halting), MeterSettings::default()).await;
    let got = exchange(meter.address, &request(CHAT, "", BODY)).await;
    assert_eq!((got.status, got.body.as_slice()), (200, WORDS.as_bytes()));
    let told = meter.ledger.only().await;
    assert!(is_cut(&told.ended) && told.usage.is_some_and(|usage| usage.completion == 2), "{told:?}");
}

#[tokio::test]
async fn a_provider_that_is_not_there_was_not_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let nobody = listener.local_addr().expect("an address");
    drop(listener);
    let meter = meter(&format!("http://{nobody}/v1"), MeterSettings::default()).await;
    let got = exchange(meter.address, &request(CHAT, "", BODY)).await;
    assert_eq!((got.status, got.json()["error"]["code"].as_str()), (502, Some("provider_not_reached")));
    let told = meter.ledger.only().await;
    assert!(matches!(&told.ended, Ended::NotReached(how) if how.contains("refused")), "{:?}", told.ended);
    assert!(!String::from_utf8_lossy(&got.body).contains(&nobody.to_string()), "addresses are nobody's business");
}

#[tokio::test]
async fn what_a_client_leaves_is_read_to_its_end() {
    let wait = Step::Wait(Duration::from_millis(150));
    let stream = vec![say(format!("{STREAM}{}", chunk(WORDS))), wait.clone(), say(format!("{}0\r\n\r\n", chunk(END)))];
    let upstream = Scripted::start(stream).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    leave_after(meter.address, &request(CHAT, "", BODY), 60).await;
    let told = meter.ledger.only().await;
    assert_eq!((told.ended, told.client_left, told.counted_here), (Ended::Complete, true, false));
    assert_eq!(told.usage.map(|usage| (usage.prompt, usage.completion)), Some((9, 2)));

    // one that leaves before anything has come
    let body = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}"#;
    let late = Scripted::start(vec![wait, say(reply("200 OK", "content-type: application/json\r\n", body))]).await;
    let meter = crate::ledger::meter(&late.base(), MeterSettings::default()).await;
    leave_after(meter.address, &request(CHAT, "", BODY), 0).await;
    let told = meter.ledger.only().await;
    assert_eq!((told.ended, told.client_left, told.usage.map(|usage| usage.prompt)), (Ended::Complete, true, Some(9)));
}

#[tokio::test]
async fn reading_on_has_bounds() {
    let endless = chunk(WORDS).into_bytes();
    let slow = MeterSettings { linger: Duration::from_millis(100), ..MeterSettings::default() };
    let large = MeterSettings { linger_bytes: 10_000, ..MeterSettings::default() };
    let none = MeterSettings { most_lingering: 0, ..MeterSettings::default() };
    let waiting = vec![say(format!("{STREAM}{}", chunk(WORDS))), Step::Wait(Duration::from_secs(60))];
    let flooding = vec![say(STREAM), Step::Forever(endless)];
    for (settings, steps) in [(slow, waiting.clone()), (large, flooding), (none, waiting)] {
        let upstream = Scripted::start(steps).await;
        let meter = meter(&upstream.base(), settings).await;
        leave_after(meter.address, &request(CHAT, "", BODY), 60).await;
        let told = meter.ledger.only().await;
        assert_eq!((&told.ended, told.client_left, told.counted_here), (&Ended::CutByClient, true, true));
        assert!(told.usage.is_some_and(|usage| usage.completion >= 2), "{told:?}");
    }
    // and before the head of a reply
    let silent = Scripted::start(vec![Step::Wait(Duration::from_secs(60))]).await;
    let linger = |ms: u64| MeterSettings { linger: Duration::from_millis(ms), ..MeterSettings::default() };
    let meter = meter(&silent.base(), linger(100)).await;
    leave_after(meter.address, &request(CHAT, "", BODY), 0).await;
    let told = meter.ledger.only().await;
    assert_eq!((&told.ended, told.client_left), (&Ended::CutByClient, true), "it may have answered yet");
    assert_eq!((told.status, told.usage), (0, None));
    // one that has had all of its time hangs
    let silent = Scripted::start(vec![Step::Wait(Duration::from_secs(60))]).await;
    let mut upstream = Upstream::new(silent.base(), real_key());
    upstream.first_byte = Duration::from_millis(80);
    let meter = meter_to(upstream, linger(10_000)).await;
    leave_after(meter.address, &request(CHAT, "", BODY), 0).await;
    let told = meter.ledger.only().await;
    assert!(matches!(&told.ended, Ended::CutByProvider(how) if how.contains("no answer")), "it hangs: {told:?}");
    assert_eq!((told.status, told.client_left, told.usage), (0, true, None));
}

#[tokio::test]
async fn a_meter_that_stops_lets_requests_end_and_settles_them() {
    let stream = vec![
        say(format!("{STREAM}{}", chunk(WORDS))),
        Step::Wait(Duration::from_millis(200)),
        say(format!("{}0\r\n\r\n", chunk(END))),
    ];
    let upstream = Scripted::start(stream).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let address = meter.address;
    let asking = tokio::spawn(async move { exchange(address, &request(CHAT, "", BODY)).await });
    while meter.ledger.seen().sent == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ledger = meter.stop().await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
    assert_eq!(ledger.seen().settled.iter().map(|told| told.ended.clone()).collect::<Vec<_>>(), [Ended::Complete]);
    assert!(asking.await.expect("ends").body.ends_with(b"data: [DONE]\n\n"));
}

#[tokio::test]
async fn what_a_meter_does_not_live_to_see_is_uncertain() {
    let upstream =
        Scripted::start(vec![say(format!("{STREAM}{}", chunk(WORDS))), Step::Wait(Duration::from_secs(60))]).await;
    let settings = MeterSettings { stop: Duration::from_millis(50), ..MeterSettings::default() };
    let meter = meter(&upstream.base(), settings).await;
    let asking = tokio::spawn({
        let address = meter.address;
        async move { exchange(address, &request(CHAT, "", BODY)).await.body }
    });
    while upstream.written() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // what has come is on its way to the client
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = Instant::now();
    let ledger = meter.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "it waits no longer than it may");
    assert_eq!(asking.await.expect("ends"), WORDS.as_bytes());
    while ledger.seen().uncertain == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ledger.seen().settled.len(), 0);
}

#[tokio::test]
async fn a_meter_in_a_hurry_drops_what_is_in_flight_and_has_told_of_it_when_it_ends() {
    let upstream =
        Scripted::start(vec![say(format!("{STREAM}{}", chunk(WORDS))), Step::Wait(Duration::from_secs(60))]).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let address = meter.address;
    let asking = tokio::spawn(async move { exchange(address, &request(CHAT, "", BODY)).await.body });
    while upstream.written() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // what has come is on its way to the client
    tokio::time::sleep(Duration::from_millis(100)).await;
    let begun = Instant::now();
    meter.hurry.cancel();
    let ledger = meter.stop().await;
    assert!(begun.elapsed() < Duration::from_secs(5), "it waits for nobody");
    assert_eq!(ledger.seen().uncertain, 1);
    assert!(ledger.seen().settled.is_empty());
    assert_eq!(asking.await.expect("ends"), WORDS.as_bytes());
}
