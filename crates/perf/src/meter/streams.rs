//! What a meter holds of many streams that are all there at once.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use super::{asking::prompt, build, proxy::Proxy};
use crate::{cluster::cpu::peak_mib, measure::median};

const TARGET_MB: f64 = 200.0;
const MB_OF_MIB: f64 = 1.048_576;
/// Events of a stream that are there at once; as many wait until all streams have begun.
const EVENTS: usize = 20;

/// Streams that have all begun before the first of them goes on to its end.
pub(super) async fn many(rounds: usize, streams: usize) -> anyhow::Result<Value> {
    let (mut peaks, mut idle) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (go_on, told) = watch::channel(false);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let provider = format!("http://{}/v1", listener.local_addr()?);
        let serving = tokio::spawn(slow_provider(listener, told));
        let meter = Proxy::start("meter-server", &provider)?;
        idle.push(peak_mib(meter.asked().pid) * MB_OF_MIB);
        let address =
            meter.asked().door.base_url.trim_start_matches("http://").split('/').next().context("an address")?;
        let mut open = Vec::new();
        for number in 0..streams {
            open.push(begin(address, number).await?);
        }
        for stream in &mut open {
            let mut some = [0; 1024];
            stream.read_exact(&mut some).await?;
        }
        go_on.send(true).context("the provider waits")?;
        for mut stream in open {
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await?;
            let is_whole = rest.windows(6).any(|six| six == b"[DONE]");
            ensure!(is_whole, "a stream did not come to its end");
        }
        peaks.push(peak_mib(meter.asked().pid) * MB_OF_MIB);
        serving.abort();
    }
    let peak = peaks.iter().copied().fold(0.0, f64::max);
    Ok(json!({
        "scenario": "meter-streams",
        "build": build(),
        "streams_at_once": streams,
        "peak_mb": peak,
        "target_mb": TARGET_MB,
        "met": peak <= TARGET_MB,
        "rounds_mb": peaks,
        "yardstick": {"what": "the same process before its first request", "peak_mb": median(idle)},
    }))
}

async fn begin(address: &str, number: usize) -> anyhow::Result<TcpStream> {
    let message = json!({"role": "user", "content": prompt(number)});
    let body = json!({"model": "gpt-4o-mini", "stream": true, "messages": [message]}).to_string();
    let mut stream = TcpStream::connect(address).await?;
    let head = format!(
        "POST /m/run/v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer t\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    Ok(stream)
}

/// Begins each stream at once, and ends all of them when it is told to.
async fn slow_provider(listener: TcpListener, told: watch::Receiver<bool>) {
    while let Ok((stream, _)) = listener.accept().await {
        let told = told.clone();
        // who goes away is noticed by the client, whose stream is not whole then
        tokio::spawn(async move { drop(one_stream(stream, told).await) });
    }
}

async fn one_stream(mut stream: TcpStream, mut told: watch::Receiver<bool>) -> anyhow::Result<()> {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let choice = json!({"index": 0, "delta": {"content": "a few words "}, "finish_reason": null});
    let event = json!({"id": "c", "model": "gpt-4o-mini", "choices": [choice], "usage": null});
    let events = chunk(&format!("data: {event}\n\n")).repeat(EVENTS);
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": null});
    let used = json!({"choices": [], "usage": {"prompt_tokens": 500, "completion_tokens": 60}});
    let end = chunk(&format!("data: {last}\n\ndata: {used}\n\ndata: [DONE]\n\n"));
    read_request(&mut stream).await?;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(format!("{head}{events}").as_bytes()).await?;
    told.wait_for(|go_on| *go_on).await?;
    stream.write_all(format!("{events}{end}0\r\n\r\n").as_bytes()).await?;
    Ok(())
}

/// Reads a request to its end: a connection that is closed with bytes unread loses what was written to it.
async fn read_request(stream: &mut TcpStream) -> anyhow::Result<()> {
    let mut request = Vec::new();
    loop {
        ensure!(stream.read_buf(&mut request).await? > 0, "a request has an end");
        let Some(at) = request.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&request[..at]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).context("a length")?;
        if request.len() >= at + 4 + length.trim().parse::<usize>()? {
            return Ok(());
        }
    }
}
