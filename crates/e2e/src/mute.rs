//! A collector that takes everything and never answers: what is sent to it stays on the way.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bench_testkit::process::wait_until;

/// It listens for OTLP over HTTP on a port of its own, as long as the process lives.
pub struct Mute {
    endpoint: String,
    heard: Heard,
}

/// Bodies of the requests for traces, in the order in which they were complete.
type Heard = Arc<Mutex<Vec<Vec<u8>>>>;

fn lock(heard: &Heard) -> MutexGuard<'_, Vec<Vec<u8>>> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Mute {
    /// Begins to listen.
    ///
    /// # Panics
    /// When there is no port.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
        let heard = Heard::default();
        let of_listener = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let heard = Arc::clone(&of_listener);
                std::thread::spawn(move || listen(stream, &heard));
            }
        });
        Self { endpoint, heard }
    }

    /// What `OTEL_EXPORTER_OTLP_ENDPOINT` wants.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Waits until the traces of questions are on the way here.
    ///
    /// # Panics
    /// When none come within a minute.
    pub fn wait_for_questions(&self) {
        wait_until("traces of questions are on the way", Duration::from_secs(60), || self.holds(b"bench.question.id"));
    }

    /// Whether a question's trace, by its id in hexadecimal characters, has come here.
    #[must_use]
    pub fn has_heard_of(&self, trace: &str) -> bool {
        let id: Vec<u8> =
            (0..trace.len() / 2).filter_map(|at| u8::from_str_radix(&trace[2 * at..2 * at + 2], 16).ok()).collect();
        self.holds(&id)
    }

    fn holds(&self, bytes: &[u8]) -> bool {
        lock(&self.heard).iter().any(|body| body.windows(bytes.len()).any(|window| window == bytes))
    }
}

/// Reads a connection's only request and keeps it open: its sender goes on waiting.
fn listen(stream: TcpStream, heard: &Heard) {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length, mut first) = (String::new(), 0, String::new());
    loop {
        line.clear();
        match reader.read_line(&mut line) {
            Ok(1..) if line != "\r\n" => {}
            Ok(1..) => break,
            _ => return,
        }
        if first.is_empty() {
            first.clone_from(&line);
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_ok() && first.contains("/v1/traces") {
        lock(heard).push(body);
    }
    // until the other side gives up or is gone
    let _ = reader.read(&mut [0]);
}
