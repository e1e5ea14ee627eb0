//! An S3 server as a process of its own: moto, from PyPI, in a virtual environment that is made once for all tests.

use std::time::{Duration, Instant};

use crate::{
    http, ports,
    process::{Process, mortal},
    python,
};

/// Longest wait for its first answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server with an empty bucket `bench`.
#[derive(Debug)]
pub struct S3 {
    process: Process,
    place: String,
    _logs: tempfile::TempDir,
}

impl S3 {
    /// Starts one on a free port.
    ///
    /// # Panics
    /// When it cannot be installed or started: a missing service is a failed test.
    #[must_use]
    pub fn start() -> Self {
        let logs = tempfile::tempdir().expect("a temporary folder");
        let [port] = ports::reserve().expect("a free port");
        let mut command = mortal(&python::python(python::MOTO));
        command.args(["-c", "from moto.server import main; main()", "-H", "127.0.0.1", "-p", &port.to_string()]);
        let process = Process::start(command, logs.path(), "moto");
        let place = format!("127.0.0.1:{port}");
        let began = Instant::now();
        while !http::get(&place, "/moto-api/").is_ok_and(|reply| reply.status == 200) {
            assert!(began.elapsed() < PATIENCE, "moto does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        let made = http::request("PUT", &place, "/bench", None, "").expect("moto answers");
        assert_eq!(made.status, 200, "{}", made.body);
        Self { process, place, _logs: logs }
    }

    /// `host:port`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The environment that makes clients use the server at `place` (its own, or a proxy's before it).
    #[must_use]
    pub fn environment(place: &str) -> [(&'static str, String); 4] {
        [
            ("AWS_ACCESS_KEY_ID", ACCESS.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://{place}")),
        ]
    }

    /// Stops it at once.
    pub fn kill(mut self) {
        self.process.kill();
    }
}

/// Id of the key that runs are given.
pub const ACCESS: &str = "AKIAPLANTED0123456";
/// The secret key that runs are given; no output may ever hold it.
pub const SECRET: &str = "planted/secret+0123456789abcdef";
