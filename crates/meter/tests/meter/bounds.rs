//! Bounds: slow and many clients hold little, and keep nobody out.

use std::time::Duration;

use bench_meter::{Ended, MeterSettings};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    ledger::{FOREIGN_KEY, meter},
    scripted::{STREAM, Scripted, Step, chunk, exchange, reply, request},
};

const CHAT: &str = "/m/run-1/v1/chat/completions";
const BODY: &[u8] = br#"{"model":"m","stream":true,"messages":[]}"#;
const WORDS: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"word \"}}]}\n\n";

fn small(settings: MeterSettings) -> MeterSettings {
    let short = Duration::from_millis(300);
    MeterSettings { head: short, body: short, ..settings }
}

/// What comes until the other side closes.
async fn until_closed(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut all)).await.expect("it is closed");
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn a_client_that_does_not_read_is_not_read_for_and_has_its_time() {
    // nothing is read that nobody takes
    let many = chunk(&WORDS.repeat(100)).into_bytes();
    let upstream = Scripted::start(vec![Step::Say(STREAM.into()), Step::Forever(many)]).await;
    let settings = MeterSettings { client_stall: Duration::from_secs(2), linger_bytes: 1, ..MeterSettings::default() };
    let meter = meter(&upstream.base(), settings).await;
    let mut lazy = TcpStream::connect(meter.address).await.expect("connects");
    lazy.write_all(&request(CHAT, "", BODY)).await.expect("writes");
    // until all buffers are full
    let mut first = 0;
    while first == 0 || first != upstream.written() {
        first = upstream.written();
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    // what lies in the buffers of four sockets
    assert!(first < 32 << 20, "{first}");
    let told = meter.ledger.only().await;
    assert_eq!((told.ended, told.client_left), (Ended::CutByClient, true));
}

#[tokio::test]
async fn heads_and_bodies_that_do_not_come_have_their_time() {
    let upstream = Scripted::saying(reply("200 OK", "", "{}")).await;
    let meter = meter(&upstream.base(), small(MeterSettings::default())).await;
    let mut slow = TcpStream::connect(meter.address).await.expect("connects");
    slow.write_all(b"POST /m/run-1/v1/chat").await.expect("writes");
    assert_eq!(until_closed(&mut slow).await, "");
    let mut half = TcpStream::connect(meter.address).await.expect("connects");
    let text = request(CHAT, "", BODY);
    half.write_all(&text[..text.len() - 5]).await.expect("writes");
    let said = until_closed(&mut half).await;
    assert!(said.starts_with("HTTP/1.1 408") && said.contains("x-should-retry: true"), "{said}");
    let mut long = TcpStream::connect(meter.address).await.expect("connects");
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: localhost\r\nx: {}", "x".repeat(100_000));
    let _ = long.write_all(head.as_bytes()).await;
    let said = until_closed(&mut long).await;
    assert!(said.is_empty() || said.starts_with("HTTP/1.1 431"), "{said}");
    assert!(upstream.requests().is_empty() && meter.ledger.seen().asked.is_empty());
}

#[tokio::test]
async fn connections_that_wait_keep_nobody_out() {
    let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", "{}")).await;
    let meter = meter(&upstream.base(), MeterSettings { most_connections: 20, ..MeterSettings::default() }).await;
    let mut waiting = Vec::new();
    for n in 0..60 {
        let mut stream = TcpStream::connect(meter.address).await.expect("connects");
        if n % 2 == 0 {
            let text = request(CHAT, "", BODY);
            stream.write_all(&text[..text.len() - 2]).await.expect("writes");
        }
        waiting.push(stream);
    }
    for _ in 0..3 {
        assert_eq!(exchange(meter.address, &request(CHAT, "", BODY)).await.status, 200);
    }
    until_closed(&mut waiting[0]).await;
}

#[tokio::test]
async fn bytes_of_all_requests_together_have_a_bound() {
    let upstream = Scripted::start(vec![
        Step::Wait(Duration::from_millis(500)),
        Step::Say(reply("200 OK", "content-type: application/json\r\n", "{}").into_bytes()),
    ])
    .await;
    let held = MeterSettings { most_held_bytes: 64 << 10, ..small(MeterSettings::default()) };
    let meter = meter(&upstream.base(), held).await;
    let body = format!("{{\"model\":\"m\",\"input\":\"{}\"}}", "x".repeat(50_000));
    let text = request("/m/run-1/v1/embeddings", "", body.as_bytes());
    let address = meter.address;
    let first = tokio::spawn({
        let text = text.clone();
        async move { exchange(address, &text).await.status }
    });
    while meter.ledger.seen().sent == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // room for a length that is said is waited for; it is not the client who was slow
    assert_eq!(exchange(address, &text).await.status, 429);
    let head = "POST /m/run-1/v1/embeddings HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer t\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let chunked = format!("{head}{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let refused = exchange(address, chunked.as_bytes()).await;
    // while the first is still there
    assert!(refused.status == 429 || first.is_finished(), "{}", refused.status);
    assert_eq!(first.await.expect("ends"), 200);
    assert_eq!(exchange(address, &text).await.status, 200, "there is room again");
}

#[tokio::test]
async fn who_has_no_key_of_the_run_takes_no_room() {
    let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", "{}")).await;
    let held = MeterSettings { most_held_bytes: 64 << 10, ..MeterSettings::default() };
    let meter = meter(&upstream.base(), held).await;
    let mut foreign = Vec::new();
    for _ in 0..3 {
        let mut stream = TcpStream::connect(meter.address).await.expect("connects");
        let head = format!(
            "POST {CHAT} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {FOREIGN_KEY}\r\ncontent-length: 60000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("writes");
        foreign.push(stream);
    }
    let body = format!("{{\"model\":\"m\",\"input\":\"{}\"}}", "x".repeat(50_000));
    let text = request("/m/run-1/v1/embeddings", "", body.as_bytes());
    let got = tokio::time::timeout(Duration::from_secs(10), exchange(meter.address, &text)).await;
    assert_eq!(got.expect("nobody is waited for").status, 200);
    for mut stream in foreign {
        let said = until_closed(&mut stream).await;
        assert!(said.starts_with("HTTP/1.1 401"), "{said}");
    }
    assert_eq!(meter.ledger.seen().asked.len(), 1, "nothing else was read");
}

#[tokio::test]
async fn the_time_for_a_body_begins_when_there_is_room() {
    let answer = reply("200 OK", "content-type: application/json\r\n", "{}").into_bytes();
    let upstream = Scripted::start(vec![Step::Wait(Duration::from_millis(2500)), Step::Say(answer)]).await;
    let settings =
        MeterSettings { most_held_bytes: 64 << 10, body: Duration::from_secs(4), ..MeterSettings::default() };
    let meter = meter(&upstream.base(), settings).await;
    let body = format!("{{\"model\":\"m\",\"input\":\"{}\"}}", "x".repeat(50_000));
    let text = request("/m/run-1/v1/embeddings", "", body.as_bytes());
    let (address, first) = (meter.address, text.clone());
    let first = tokio::spawn(async move { exchange(address, &first).await.status });
    while meter.ledger.seen().sent == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut second = TcpStream::connect(address).await.expect("connects");
    second.write_all(&text[..text.len() - 5]).await.expect("writes");
    // together longer than one of the two waits may be
    tokio::time::sleep(Duration::from_millis(5000)).await;
    second.write_all(&text[text.len() - 5..]).await.expect("writes");
    let said = until_closed(&mut second).await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    assert_eq!(first.await.expect("ends"), 200);
}

#[tokio::test]
async fn a_reply_beyond_the_bound_passes_and_is_not_kept_and_its_use_is_told() {
    let vectors = format!("[{}]", vec!["0.123456"; 400_000].join(","));
    let body = format!("{{\"data\":{vectors},\"usage\":{{\"prompt_tokens\":5,\"total_tokens\":5}}}}");
    let upstream = Scripted::saying(reply("200 OK", "content-type: application/json\r\n", &body)).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let sent = br#"{"model":"m","input":"x"}"#;
    let got = exchange(meter.address, &request("/m/run-1/v1/embeddings", "", sent)).await;
    assert!(got.body == body.as_bytes(), "it passes whole");
    let told = meter.ledger.only().await;
    assert_eq!((told.usage.map(|usage| usage.prompt), told.counted_here, told.reply), (Some(5), false, None));
}

/// Memory that this process has, in MiB.
fn resident_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kib: f64 = line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number");
    kib / 1024.0
}

/// The server and the clients are in this process too: what the meter alone holds is less.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_streams_at_once_hold_little() {
    const STREAMS: usize = 400;
    let open = format!("{STREAM}{}", chunk(&WORDS.repeat(50)));
    let upstream = Scripted::start(vec![Step::Say(open.into_bytes()), Step::Wait(Duration::from_secs(600))]).await;
    let meter = meter(&upstream.base(), MeterSettings::default()).await;
    let before = resident_mib();
    let mut streams = Vec::new();
    for _ in 0..STREAMS {
        let mut stream = TcpStream::connect(meter.address).await.expect("connects");
        stream.write_all(&request(CHAT, "", BODY)).await.expect("writes");
        streams.push(stream);
    }
    for stream in &mut streams {
        let mut some = [0; 1000];
        stream.read_exact(&mut some).await.expect("begins");
    }
    let each_kib = (resident_mib() - before) * 1024.0 / STREAMS as f64;
    assert!(each_kib < 180.0, "{each_kib} KiB for each stream, of which a third is the test's own");
    drop(streams);
}
