//! The meter without money or store, and what else is measured beside it, in a process of its own.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    sync::Arc,
};

use anyhow::Context as _;
use bench_meter::{Address, Admission, Admitted, Asked, Meter, MeterSettings, Outcome, Refusal, Upstream};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use tokio::net::TcpListener;

use super::{Way, asking::Door};

/// Admits everything, and forgets it.
struct Everything(Upstream);

struct Nothing(Upstream);

#[async_trait::async_trait]
impl Admission for Everything {
    async fn authenticate(&self, _: &Address, _: &str) -> Result<(), Refusal> {
        Ok(())
    }

    async fn admit(&self, _: &Asked) -> Result<Box<dyn Admitted>, Refusal> {
        Ok(Box::new(Nothing(self.0.clone())))
    }
}

#[async_trait::async_trait]
impl Admitted for Nothing {
    fn upstream(&self) -> Upstream {
        self.0.clone()
    }

    fn sent(&mut self) {}

    async fn settle(self: Box<Self>, _: Outcome) {}
}

/// The meter of a measurement, in this process. Ends with its input.
pub(crate) fn serve(provider: &str) -> anyhow::Result<()> {
    // as in `bench-coord meter`
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer sk-none"));
        let admission = Arc::new(Everything(Upstream::new(provider, headers)));
        let meter = Meter::new(admission, MeterSettings::default())?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}/m/run/v1", listener.local_addr()?);
        let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
        let shutdown = async {
            let _ = ended.await;
        };
        Ok(meter.serve(listener, shutdown).await?)
    })
}

/// A process that passes requests on.
pub(super) struct Proxy {
    child: Child,
    door: Door,
}

impl Proxy {
    /// Starts this scenario of ours before a provider, and waits until it listens.
    pub(super) fn start(scenario: &str, provider: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([scenario, provider]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("{scenario} cannot be started"))?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("is piped")?).read_line(&mut line)?;
        Ok(Self { child, door: Door { base_url: line.trim().to_owned(), key: "any".to_owned() } })
    }

    pub(super) fn asked(&self) -> Way<'_> {
        Way { door: &self.door, pid: self.child.id() }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
