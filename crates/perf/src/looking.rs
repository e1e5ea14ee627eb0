//! What looking costs: the same run with telemetry (a collector that takes everything, nothing slow) and without, in interleaved
//! pairs; CPU seconds per question are what counts. A third run of each pair has a collector that never answers.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::{Value, json};

use crate::{
    measure::{Sample, median},
    scenarios::{Lab, QUESTIONS},
};

/// Most CPU that telemetry may cost, in percent.
const MOST_PERCENT: f64 = 5.0;
/// Most memory, in MiB.
const MOST_MIB: f64 = 30.0;

/// A collector that takes everything over HTTP and throws it away.
struct Sink {
    address: String,
    requests: Arc<AtomicU64>,
}

impl Sink {
    fn start(answers: bool) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (address, requests) = (format!("http://{}", listener.local_addr()?), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&requests);
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming().flatten() {
                if answers {
                    let counted = Arc::clone(&counted);
                    std::thread::spawn(move || take(stream, &counted));
                } else {
                    // held open, never answered
                    silent.push(stream);
                }
            }
        });
        Ok(Self { address, requests })
    }
}

/// Answers the requests of a connection with an empty protobuf message.
fn take(mut stream: TcpStream, requests: &AtomicU64) {
    let (mut held, mut part) = (Vec::new(), [0_u8; 16 * 1024]);
    loop {
        let Some(head) = held.windows(4).position(|window| window == b"\r\n\r\n") else {
            match stream.read(&mut part) {
                Ok(0) | Err(_) => return,
                Ok(read) => held.extend_from_slice(&part[..read]),
            }
            continue;
        };
        let text = String::from_utf8_lossy(&held[..head]).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        let whole = head + 4 + length.unwrap_or(0);
        while held.len() < whole {
            match stream.read(&mut part) {
                Ok(0) | Err(_) => return,
                Ok(read) => held.extend_from_slice(&part[..read]),
            }
        }
        held.drain(..whole);
        requests.fetch_add(1, Ordering::Relaxed);
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        if stream.write_all(answer).is_err() {
            return;
        }
    }
}

impl Lab {
    /// Telemetry on against off, and with a collector that does not answer.
    pub(crate) fn looking(&self, conversations: u32) -> anyhow::Result<Value> {
        let size = format!("sim.conversations={conversations}");
        let args = ["--dataset", "locomo-sim", "--set", &size];
        let questions = QUESTIONS * f64::from(conversations) / 10.0;
        let (taking, silent) = (Sink::start(true)?, Sink::start(false)?);
        let with = |sink: &Sink| {
            [
                ("OTEL_EXPORTER_OTLP_ENDPOINT", sink.address.clone()),
                ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf".into()),
            ]
        };
        self.once_with(&args, &[])?;
        let (mut off, mut on, mut away) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.rounds {
            // the order changes: whoever comes second finds warmer caches
            if round % 2 == 0 {
                off.push(self.once_with(&args, &[])?);
                on.push(self.once_with(&args, &with(&taking))?);
            } else {
                on.push(self.once_with(&args, &with(&taking))?);
                off.push(self.once_with(&args, &[])?);
            }
            away.push(self.once_with(&args, &with(&silent))?);
        }
        let percent = |some: &[Sample]| {
            median(some.iter().zip(&off).map(|(on, off)| 100.0 * (on.cpu_seconds / off.cpu_seconds - 1.0)))
        };
        let mib = |some: &[Sample]| median(some.iter().zip(&off).map(|(on, off)| on.peak_mib - off.peak_mib));
        let ms = |some: &[Sample]| median(some.iter().map(|s| s.cpu_seconds * 1000.0 / questions));
        let (cpu, memory) = (percent(&on), mib(&on));
        Ok(json!({
            "scenario": "looking",
            "questions": questions,
            "cpu_ms_per_question": {"off": ms(&off), "on": ms(&on), "away": ms(&away)},
            "cpu_percent": cpu,
            "cpu_percent_away": percent(&away),
            "mib": memory,
            "mib_away": mib(&away),
            "targets": {"cpu_percent": MOST_PERCENT, "mib": MOST_MIB},
            "within": cpu <= MOST_PERCENT && memory <= MOST_MIB,
            "requests_taken": taking.requests.load(Ordering::Relaxed),
            "samples": {"off": off, "on": on, "away": away},
        }))
    }
}
