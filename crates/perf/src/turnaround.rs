//! What a slot costs a question when there are few slots and no model: the way from the end of one question to the end of the next
//! one, in parts that add up, read from the times that are stored. The yardstick commits one row after the other to the same disk.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;
use bench_proto::ids::{RunNo, TaskKey, TaskKind};
use bench_store::{RunFilter, Store};
use serde_json::{Value, json};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, SqliteConnection,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use crate::{
    cluster::{Fleet, Services, Workers},
    measure::{Sample, median, run},
    scenarios::Lab,
};

/// Most milliseconds from the end of a question to the end of the next.
const TARGET_MS: f64 = 3.0;
/// Commits of the yardstick in each round.
const COMMITS: usize = 300;
/// Questions whose facts are read at once.
const PAGE: u32 = 1_000;

/// A question's times, in microseconds since 1970.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// When it was published, by a note that came before its claim.
    published: Option<i64>,
    claimed: i64,
    began: i64,
    ended: i64,
    stored: i64,
}

/// The parts of the way, each with what is known of it, in milliseconds.
type Parts = BTreeMap<&'static str, Vec<f64>>;

/// Where the run's parts are; one round.
struct Round {
    parts: Parts,
    commit_ms: f64,
    sample: Option<Sample>,
}

/// Local runs, `concurrency` questions at a time.
pub(crate) async fn local(lab: &Lab, concurrency: u32, questions: Option<u32>) -> anyhow::Result<Value> {
    let (concurrency_flag, limit) = (concurrency.to_string(), questions.map(|most| most.to_string()));
    let mut args = vec!["--dataset", lab.dataset(), "--concurrency", &concurrency_flag];
    args.extend(limit.iter().flat_map(|most| ["--limit", most]));
    let mut rounds = Vec::new();
    for number in 0..=lab.rounds {
        let folder = tempfile::tempdir()?;
        let sample = run(&mut lab.submit(folder.path(), &args))?;
        let commit_ms = commits_to_a_file(&folder.path().join("yardstick.db")).await?;
        let url = format!("sqlite:{}", folder.path().join(".bench/bench.db").display());
        let parts = parts(&url, concurrency as usize).await?;
        // the first round warms caches
        if number > 0 {
            rounds.push(Round { parts, commit_ms, sample: Some(sample) });
        }
    }
    Ok(told("turnaround", lab.dataset(), concurrency, &rounds))
}

/// The same over a coordinator and one worker.
pub(crate) async fn in_cluster(
    services: &Services,
    rounds: usize,
    concurrency: u32,
    questions: u32,
) -> anyhow::Result<Value> {
    let fleet = Fleet::start(services, &Workers { count: 1, slots: 16, provider: None }).await?;
    let (concurrency_flag, limit) = (concurrency.to_string(), questions.to_string());
    let args = ["--dataset", "locomo-sim", "--concurrency", &concurrency_flag, "--limit", &limit];
    let mut seen = Vec::new();
    for number in 0..=rounds {
        let mut submit = fleet.submit(&args).spawn()?;
        let status = tokio::task::spawn_blocking(move || submit.wait()).await??;
        anyhow::ensure!(status.success(), "submit ended with {status}: {}", fleet.last_words());
        let commit_ms = commits_to_a_server(&fleet.place.store).await?;
        let parts = parts(&fleet.place.store, concurrency as usize).await?;
        if number > 0 {
            seen.push(Round { parts, commit_ms, sample: None });
        }
    }
    Ok(told("cluster-turnaround", "locomo-sim", concurrency, &seen))
}

fn told(scenario: &str, dataset: &str, concurrency: u32, rounds: &[Round]) -> Value {
    let ms = |value: f64| (value * 1_000.0).round() / 1_000.0;
    let of = |pick: &dyn Fn(&Round) -> f64| ms(median(rounds.iter().map(pick)));
    let part = |round: &Round, name: &str| median(round.parts.get(name).into_iter().flatten().copied());
    let names: Vec<&str> = rounds.first().map(|round| round.parts.keys().copied().collect()).unwrap_or_default();
    let parts: BTreeMap<&str, f64> =
        names.into_iter().filter(|name| *name != TURN).map(|name| (name, of(&|round| part(round, name)))).collect();
    let samples: Vec<Sample> = rounds.iter().filter_map(|round| round.sample).collect();
    json!({
        "scenario": scenario,
        "dataset": dataset,
        "concurrency": concurrency,
        "target_ms": TARGET_MS,
        "turns": of(&|round| round.parts.get(TURN).map_or(0.0, |turns| turns.len() as f64)),
        "turn_ms": of(&|round| part(round, TURN)),
        "parts_ms": parts,
        "noted_before_claim": of(&|round| {
            let known = |name: &str| round.parts.get(name).map_or(0.0, |known| known.len() as f64);
            known(LOOK) / known(TURN)
        }),
        "yardstick": {
            "what": "commits of one row, one after the other",
            "commit_ms": of(&|round| round.commit_ms),
            "turn_in_commits": of(&|round| part(round, TURN) / round.commit_ms),
        },
        "samples": samples,
    })
}

const TURN: &str = "turn";
/// End of a question to the claim of the next: commit's flush, wake-up, look, publishing, queue, claim.
const HANDED_OVER: &str = "stored_to_claimed";
/// The first part of it, where the note of publishing came before the claim.
const LOOK: &str = "stored_to_published";
/// The rest of it, where that is known.
const QUEUE: &str = "published_to_claimed";
/// The claim's flush, and what is read before the work begins.
const BEGIN: &str = "claimed_to_begun";
const WORK: &str = "work";
/// The writer, up to the statement of the commit.
const STORE: &str = "ended_to_stored";

/// The parts of the newest run in a store, which had so many questions in flight.
async fn parts(url: &str, slots: usize) -> anyhow::Result<Parts> {
    let store = bench_store::open(url).await?;
    let newest = store.list_runs(&RunFilter { limit: Some(1), ..RunFilter::default() }).await?;
    let run = newest.first().context("a run")?.run_no;
    let mut ways = ways(store.as_ref(), run).await?;
    store.close().await;
    ways.sort_by_key(|way| way.stored);
    let ms = |from: i64, to: i64| (to - from) as f64 / 1_000.0;
    let mut parts = Parts::new();
    let mut add = |name, value| parts.entry(name).or_default().push(value);
    // of `slots` in flight, the one that ended first made room
    for from in ways.windows(slots + 1) {
        let (before, way) = (from[0], from[slots]);
        add(TURN, ms(before.stored, way.stored));
        add(HANDED_OVER, ms(before.stored, way.claimed));
        add(BEGIN, ms(way.claimed, way.began));
        add(WORK, ms(way.began, way.ended));
        add(STORE, ms(way.ended, way.stored));
        if let Some(published) = way.published {
            add(LOOK, ms(before.stored, published));
            add(QUEUE, ms(published, way.claimed));
        }
    }
    Ok(parts)
}

/// When the first answer of the newest run in a store was there, in microseconds since 1970.
pub(crate) async fn first_stored(url: &str) -> anyhow::Result<u64> {
    let store = bench_store::open(url).await?;
    let newest = store.list_runs(&RunFilter { limit: Some(1), ..RunFilter::default() }).await?;
    let run = newest.first().context("a run")?.run_no;
    let questions: Vec<TaskKey> = store.facts(run, None, PAGE).await?.iter().map(|facts| facts.task).collect();
    let spans = store.spans(run, &questions).await?;
    store.close().await;
    let ended = spans.chunk_by(|one, next| one.task == next.task);
    let ended = ended.filter_map(|steps| steps.iter().filter_map(|step| step.stored_us).max());
    Ok(u64::try_from(ended.min().context("a question was answered")?)?)
}

async fn ways(store: &dyn Store, run: RunNo) -> anyhow::Result<Vec<Way>> {
    let (mut ways, mut ready, mut after) = (Vec::new(), BTreeMap::new(), None);
    loop {
        let page = store.facts(run, after, PAGE).await?;
        let questions: Vec<TaskKey> = page.iter().map(|facts| facts.task).collect();
        let Some(last) = questions.last() else { return Ok(ways) };
        after = Some(*last);
        for task in &questions {
            // the questions of a bank became ready together, by the commit that proved it ready
            if let Entry::Vacant(unknown) = ready.entry(task.bank()) {
                let steps = store.bank_steps(run, task.bank()).await?;
                let proven =
                    steps.iter().filter(|step| step.task.kind() == TaskKind::Ready).filter_map(|step| step.stored_us);
                unknown.insert(proven.max().context("a bank was proven ready")?);
            }
        }
        let spans = store.spans(run, &questions).await?;
        for steps in spans.chunk_by(|one, next| one.task == next.task) {
            let timed = || steps.iter().filter_map(|step| step.facts.timing());
            let (Some(first), Some(last)) = (timed().next(), timed().next_back()) else { continue };
            let micros = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
            let ready = ready[&steps[0].task.bank()];
            ways.push(Way {
                published: (first.dispatch_us > 0).then(|| ready + micros(first.dispatch_us)),
                claimed: ready + micros(first.queue_wait_us),
                began: first.started_us,
                ended: last.started_us + micros(last.total_us),
                stored: steps.iter().filter_map(|step| step.stored_us).max().context("a stored step")?,
            });
        }
    }
}

/// Milliseconds of a commit of one row, with the settings of a local store.
async fn commits_to_a_file(file: &Path) -> anyhow::Result<f64> {
    let options = SqliteConnectOptions::new().filename(file).create_if_missing(true).page_size(8192);
    let options = options.journal_mode(SqliteJournalMode::Wal).synchronous(SqliteSynchronous::Full);
    let mut conn: SqliteConnection = options.connect().await?;
    sqlx::query("CREATE TABLE rows (n INTEGER)").execute(&mut conn).await?;
    let mut took = Vec::new();
    for _ in 0..COMMITS {
        let began = Instant::now();
        sqlx::query("INSERT INTO rows VALUES (1)").execute(&mut conn).await?;
        took.push(began.elapsed());
    }
    conn.close().await?;
    Ok(median(took.iter().map(ms)))
}

/// The same in the database of a cluster.
async fn commits_to_a_server(url: &str) -> anyhow::Result<f64> {
    let mut conn = PgConnection::connect(url).await?;
    let table = "yardstick_rows";
    sqlx::query(AssertSqlSafe(format!("CREATE TABLE IF NOT EXISTS {table} (n integer)"))).execute(&mut conn).await?;
    let mut took = Vec::new();
    for _ in 0..COMMITS {
        let began = Instant::now();
        sqlx::query(AssertSqlSafe(format!("INSERT INTO {table} VALUES (1)"))).execute(&mut conn).await?;
        took.push(began.elapsed());
    }
    conn.close().await?;
    Ok(median(took.iter().map(ms)))
}

fn ms(took: &Duration) -> f64 {
    took.as_secs_f64() * 1_000.0
}
