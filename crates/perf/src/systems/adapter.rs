//! What an adapter costs beside the network: CPU of this process for each call, against a bare HTTP client that sends the
//! same bytes to the same server and reads the response without looking at it, and against one that takes the texts out of it.

use std::{
    io::{BufRead, BufReader, Read},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::Context;
use bench_proto::dataset::StreamEntry;
use bench_systems::{
    BankRef, BuildContext, MemorySystem, StepContext, SystemSettings,
    adapter::{self, shipped},
    policy::Policy,
    registry,
};
use bench_testkit::fakes::Fake;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::banks::Asked;
use crate::measure::{cpu_of_this_process, median};

/// The adapter that is measured: a list of hits, ids and scores, as most systems answer.
const SYSTEM: &str = "mem0";
const IN_FLIGHT: usize = 16;
const TARGET_US: f64 = 200.0;
/// Most CPU of a call for that of a bare one.
const TARGET_RATIO: f64 = 1.5;

/// The system of a measurement, in a process of its own so that its CPU is not counted. Ends with its input.
pub(crate) fn memory_server(system: &str, slow: Duration, stores: Duration) -> anyhow::Result<()> {
    let fake = Fake::start(system);
    fake.with(|world| (world.slow, world.stores_take) = (slow, stores));
    println!("{}", fake.url());
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// That process.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
}

impl Server {
    /// Starts a fake of this name, each of whose requests takes so long.
    pub(crate) fn start(system: &str, slow: Duration) -> anyhow::Result<Self> {
        Self::spawn(system, slow, Duration::ZERO)
    }

    /// Starts a fake of this name that takes so long for each request that stores something.
    pub(crate) fn slow_to_store(system: &str, stores: Duration) -> anyhow::Result<Self> {
        Self::spawn(system, Duration::ZERO, stores)
    }

    fn spawn(system: &str, slow: Duration, stores: Duration) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["memory-server", system, &slow.as_millis().to_string(), &stores.as_millis().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the memory server cannot be started")?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("is piped")?).read_line(&mut line)?;
        Ok(Self { child, url: line.trim().to_owned() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Recalls of ten hits through the adapter and through bare clients, in turn.
pub(super) async fn overhead(asked: &Asked, calls: usize, rounds: usize) -> anyhow::Result<Value> {
    let server = Server::start(SYSTEM, Duration::ZERO)?;
    let spec = shipped::find(SYSTEM).context("is shipped")?.map_err(anyhow::Error::msg)?;
    let settings = SystemSettings::from([
        (adapter::ADAPTER.to_owned(), serde_json::to_value(&spec)?),
        (adapter::URL.to_owned(), server.url.clone().into()),
    ]);
    let context = BuildContext { policy: Policy::anything().into(), ..BuildContext::default() };
    let system = registry::build(SYSTEM, &settings, &context)?;
    let bank = BankRef { handle: Some(system.open_bank(&asked.bank).await?), ..asked.bank.clone() };
    system.retain(&bank, asked.entries().get(..2).unwrap_or(asked.entries()), StepContext::default()).await?;
    let question = &about_ten_turns(asked.entries());
    let found = system.recall(&bank, &asked.query(question)).await?.hits.len();
    anyhow::ensure!(found == 10, "{found} hits of 10: the measurement would not be about a usual response");
    let client = reqwest::Client::builder().http1_only().tcp_nodelay(true).no_proxy().build()?;
    let url = format!("{}/search", server.url);
    let body = json!({"query": question, "filters": {"user_id": bank.handle.as_deref()}, "top_k": 10}).to_string();
    let (mut adapters, mut bares, mut readers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        bares.push(per_call(calls, || bare(&client, &url, &body)).await?);
        readers.push(per_call(calls, || reading(&client, &url, &body)).await?);
        adapters.push(per_call(calls, || through(system.as_ref(), &bank, asked, question)).await?);
    }
    let beside: Vec<f64> = adapters.iter().zip(&bares).map(|(adapter, bare)| adapter - bare).collect();
    let overhead = median(beside.iter().copied());
    let ratio = median(adapters.iter().zip(&bares).map(|(adapter, bare)| adapter / bare));
    Ok(json!({
        "scenario": "systems-adapter",
        "adapter": SYSTEM,
        "calls": calls,
        "in_flight": IN_FLIGHT,
        "overhead_us_per_call": overhead,
        "ratio": ratio,
        "target": {"overhead_us": TARGET_US, "ratio": TARGET_RATIO},
        "met": overhead < TARGET_US && ratio <= TARGET_RATIO,
        "adapter_us_per_call": median(adapters.iter().copied()),
        "yardstick": {"what": "a bare reqwest client that sends the same bytes and looks at nothing", "us_per_call": median(bares.iter().copied())},
        "reading": {
            "what": "the same client, which reads the reply as JSON and takes the texts out of it",
            "us_per_call": median(readers.iter().copied()),
            "ratio": median(adapters.iter().zip(&readers).map(|(adapter, reader)| adapter / reader)),
        },
        "samples_us": beside,
    }))
}

/// The longest word of each of the first twelve turns: the server finds at least ten hits for it.
fn about_ten_turns(entries: &[StreamEntry]) -> String {
    let sessions = entries.iter().filter_map(|entry| match entry {
        StreamEntry::Session(session) => Some(session),
        _ => None,
    });
    let longest =
        |text: &str| text.split(|c: char| !c.is_alphanumeric()).max_by_key(|word| word.len()).map(str::to_owned);
    let words: Vec<String> =
        sessions.flat_map(|session| &session.turns).take(12).filter_map(|turn| longest(&turn.text)).collect();
    words.join(" ")
}

async fn bare(client: &reqwest::Client, url: &str, body: &str) -> anyhow::Result<usize> {
    let request = client.post(url).header("content-type", "application/json").body(body.to_owned());
    Ok(request.send().await?.error_for_status()?.bytes().await?.len())
}

async fn reading(client: &reqwest::Client, url: &str, body: &str) -> anyhow::Result<usize> {
    let request = client.post(url).header("content-type", "application/json").body(body.to_owned());
    let reply: Value = request.send().await?.error_for_status()?.json().await?;
    let hits = reply["results"].as_array().context("a list of results")?;
    let texts: Vec<String> = hits.iter().filter_map(|hit| Some(hit["memory"].as_str()?.to_owned())).collect();
    Ok(texts.len())
}

async fn through(system: &dyn MemorySystem, bank: &BankRef, asked: &Asked, question: &str) -> anyhow::Result<usize> {
    Ok(system.recall(bank, &asked.query(question)).await?.hits.len())
}

/// Microseconds of this process's CPU for each of so many calls.
async fn per_call<F: Future<Output = anyhow::Result<usize>>>(
    calls: usize,
    call: impl Fn() -> F,
) -> anyhow::Result<f64> {
    let before = cpu_of_this_process()?;
    stream::iter(0..calls)
        .map(|_| call())
        .buffer_unordered(IN_FLIGHT)
        .try_for_each(|_| std::future::ready(Ok(())))
        .await?;
    Ok((cpu_of_this_process()? - before) * 1e6 / calls as f64)
}
