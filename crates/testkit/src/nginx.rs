//! A real nginx as a reverse proxy, which is what stands before many providers.

use std::{
    fs,
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::ensure;
use tempfile::TempDir;

use crate::{
    packages, ports,
    process::{Process, mortal},
};

/// Longest wait for it to come up.
const PATIENCE: Duration = Duration::from_secs(20);

/// A running nginx.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    place: String,
    _folder: TempDir,
}

impl Nginx {
    /// Starts one that passes everything on to the server at `place` (`host:port`).
    ///
    /// # Errors
    /// When it cannot be installed or does not come up.
    pub fn before(place: &str) -> anyhow::Result<Self> {
        let program = Path::new("/usr/sbin/nginx");
        if !program.exists() {
            packages::install("nginx-light")?;
        }
        let folder = tempfile::tempdir()?;
        let [port] = ports::reserve()?;
        let own = format!("127.0.0.1:{port}");
        let at = folder.path().display();
        let config = format!(
            "daemon off;\nmaster_process off;\npid {at}/pid;\nerror_log stderr warn;\nevents {{}}\nhttp {{\n\
             access_log off;\nclient_max_body_size 64m;\n\
             client_body_temp_path {at}/body;\nproxy_temp_path {at}/proxy;\nfastcgi_temp_path {at}/fastcgi;\n\
             uwsgi_temp_path {at}/uwsgi;\nscgi_temp_path {at}/scgi;\n\
             upstream provider {{ server {place}; keepalive 16; }}\n\
             server {{ listen {own}; location / {{ proxy_pass http://provider; proxy_http_version 1.1; \
             proxy_set_header Connection \"\"; }} }}\n}}\n"
        );
        fs::write(folder.path().join("nginx.conf"), config)?;
        let mut command = mortal(program);
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf"]);
        let mut process = Process::start(command, folder.path(), "nginx");
        let began = Instant::now();
        while TcpStream::connect(&own).is_err() {
            let up = process.runs() && began.elapsed() < PATIENCE;
            ensure!(up, "nginx does not come up: {}", packages::last_lines(&folder.path().join("nginx.err")));
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Self { process, place: own, _folder: folder })
    }

    /// Where it listens, as `host:port`.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.process.runs()
    }
}
