//! How long a recall of `pgvector` takes by the statements that find the same: all over one table, in turn, each with the embedding
//! of what it searches for.

use std::{hint::black_box, path::Path, time::Instant};

use bench_systems::{
    BankRef, BuildContext, MemorySystem, StepContext, SystemSettings,
    embed::{Embed as _, EmbeddingModel, HashEmbeddings},
    registry,
};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _};

use super::{
    Percentiles,
    banks::{self, Asked},
    own_database,
};
use crate::measure::median;

/// A recall, by the statement alone.
const TARGET_RATIO: f64 = 1.3;
/// Entries that may be seen: all of them.
const VISIBLE: i64 = u32::MAX as i64;
/// Hits of a recall.
const K: i64 = 10;

/// How the nearest are found.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// By the memory system.
    System,
    /// By its statement, written by hand.
    Same,
    /// By the shortest statement that finds them.
    Shortest,
}

const WAYS: [Way; 3] = [Way::System, Way::Same, Way::Shortest];

/// Milliseconds of each way.
type Times = [Vec<f64>; WAYS.len()];

/// Conversations of LoCoMo's size and one bank of so many memories, in the database of a URL or in one of a server of its own.
pub(crate) async fn by_size(
    datasets_dir: Option<&Path>,
    rounds: usize,
    memories: usize,
    url: Option<&str>,
) -> anyhow::Result<Vec<Value>> {
    let url = match url {
        Some(url) => url.to_owned(),
        None => own_database()?,
    };
    let conversations = banks::conversations(datasets_dir)?;
    Ok(vec![
        recalls("systems-pgvector", &conversations, rounds, &url).await?,
        recalls("systems-pgvector-large", &[banks::large(memories)?], rounds, &url).await?,
    ])
}

/// Every question of some banks, asked in each way in turn; which way is the first of them changes with the question.
pub(super) async fn recalls(scenario: &str, banks: &[Asked], rounds: usize, url: &str) -> anyhow::Result<Value> {
    let run = format!("perf-{}", std::process::id());
    let context = BuildContext { pgvector_url: Some(url.to_owned()), ..BuildContext::default() }.for_run(run);
    let settings = SystemSettings::from([("vector.model".to_owned(), "hash".into())]);
    let system = registry::build("pgvector", &settings, &context)?;
    let mut connection = PgConnection::connect(url).await?;
    let mut of_rounds: Vec<Times> = vec![Times::default(); rounds.max(1)];
    for asked in banks {
        let bank = fill(system.as_ref(), asked).await?;
        let mut hand = Hand::of_newest(&mut connection).await?;
        for (round, times) in of_rounds.iter_mut().enumerate() {
            for (at, text) in asked.questions.iter().enumerate() {
                for turn in 0..WAYS.len() {
                    let way = WAYS[(round + at + turn) % WAYS.len()];
                    let began = Instant::now();
                    match way {
                        Way::System => drop(black_box(system.recall(&bank, &asked.query(text)).await?)),
                        Way::Same | Way::Shortest => drop(black_box(hand.search(way, text).await?)),
                    }
                    times[way as usize].push(began.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        system.reset_bank(&bank).await?;
    }
    system.close().await;
    let memories = banks.iter().map(Asked::turns).sum();
    Ok(told(scenario, (banks.len(), memories), &of_rounds))
}

/// Stores a bank.
async fn fill(system: &dyn MemorySystem, asked: &Asked) -> anyhow::Result<BankRef> {
    let bank = BankRef { handle: Some(system.open_bank(&asked.bank).await?), ..asked.bank.clone() };
    for entries in asked.entries().chunks(system.together(asked.entries()).max(1)) {
        system.retain(&bank, entries, StepContext::default()).await?;
    }
    Ok(bank)
}

/// Somebody who searches a bank's table by statements of their own, over a connection of their own.
struct Hand<'a> {
    connection: &'a mut PgConnection,
    same: String,
    shortest: String,
    model: EmbeddingModel,
}

impl<'a> Hand<'a> {
    /// For the bank that was filled last.
    async fn of_newest(connection: &'a mut PgConnection) -> anyhow::Result<Self> {
        let newest = "SELECT schemaname || '.' || tablename FROM pg_tables WHERE tablename LIKE 'bank\\_%' \
                      ORDER BY (schemaname || '.' || tablename)::regclass::oid DESC LIMIT 1";
        let table: String = sqlx::query_scalar(newest).fetch_one(&mut *connection).await?;
        // what was just written is looked through once by whoever comes first
        sqlx::query(AssertSqlSafe(format!("VACUUM ANALYZE {table}"))).execute(&mut *connection).await?;
        let distance = "embedding <=> (SELECT $1::text::vector)";
        let same = format!(
            "SELECT id, session, body, distance FROM (SELECT n, id, session, body, \
             coalesce(nullif({distance}, 'NaN'), 1) AS distance FROM {table} \
             WHERE entry < $2 AND (gone IS NULL OR gone >= $2)) AS all_of_it ORDER BY distance, n LIMIT $3"
        );
        let shortest =
            format!("SELECT id, session, body, {distance} AS distance FROM {table} ORDER BY {distance} LIMIT $2");
        let model = EmbeddingModel { name: "hash".to_owned(), account: String::new() };
        Ok(Self { connection, same, shortest, model })
    }

    async fn search(&mut self, way: Way, text: &str) -> anyhow::Result<Vec<(String, String, String, f64)>> {
        let vectors = HashEmbeddings.embed(&self.model, &[text.to_owned()]).await?;
        let vector = format!("{:?}", vectors[0]);
        let rows = match way {
            Way::Shortest => {
                let query = sqlx::query(AssertSqlSafe(self.shortest.clone())).bind(vector).bind(K);
                query.fetch_all(&mut *self.connection).await?
            }
            Way::Same | Way::System => {
                let query = sqlx::query(AssertSqlSafe(self.same.clone())).bind(vector).bind(VISIBLE).bind(K);
                query.fetch_all(&mut *self.connection).await?
            }
        };
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let body: Vec<u8> = row.try_get("body")?;
            let text = String::from_utf8(body)?;
            found.push((row.try_get("id")?, row.try_get("session")?, text, row.try_get("distance")?));
        }
        anyhow::ensure!(!found.is_empty(), "nothing was found: the measurement is about something else");
        Ok(found)
    }
}

fn told(scenario: &str, (banks, memories): (usize, usize), of_rounds: &[Times]) -> Value {
    let all = |way: Way| {
        let times = of_rounds.iter().flat_map(|times| times[way as usize].iter().copied());
        Percentiles::from_times(times.collect())
    };
    let (recall, same, shortest) = (all(Way::System), all(Way::Same), all(Way::Shortest));
    let of_round = |times: &Times| {
        let of = |way: Way| median(times[way as usize].iter().copied());
        of(Way::System) / of(Way::Same)
    };
    let ratios: Vec<f64> = of_rounds.iter().map(of_round).collect();
    let ratio = median(ratios.iter().copied());
    json!({
        "scenario": scenario,
        "banks": banks,
        "memories": memories,
        "recall": recall,
        "ratio": ratio,
        "target_ratio": TARGET_RATIO,
        "met": ratio <= TARGET_RATIO,
        "samples": ratios,
        "yardstick": {"what": "the same statement by hand, over a connection of its own, with the same embedding made", "times": same},
        "shortest": {
            "what": "the shortest statement that finds the nearest, without what the bank holds later or no more",
            "times": shortest,
            "ratio": recall.p50_ms / shortest.p50_ms,
        },
    })
}
