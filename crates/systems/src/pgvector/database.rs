//! The database of `pgvector`: a schema for each run, a table for each bank. In go documents with their vectors, out come the nearest.
//!
//! Whatever a statement names is made of hashes; everything else is bound. A transaction stores what one retain is given, with how
//! many entries the bank has then: a bank is never half of an entry further than it says.

use std::time::Duration;

use bench_proto::{failure::Failure, ids::Sha256Hash};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, PgPool, Postgres, Row as _, Transaction,
    postgres::{PgConnectOptions, PgPoolOptions, PgRow},
};
use tokio::sync::OnceCell;

use super::{Index, URL_VARIABLE};
use crate::{NOT_INSTALLED, adapter::UNREACHABLE};

/// Connections of this process with the database.
const CONNECTIONS: u32 = 16;
/// Longest wait for one of them.
const CONNECTED_WITHIN: Duration = Duration::from_secs(10);
/// Candidates that an index of the server's looks at of its own accord, and at most.
const CANDIDATES: u32 = 40;
const MOST_CANDIDATES: u32 = 1000;
/// First version of the extension with an index `hnsw`.
const FIRST_WITH_HNSW: (u32, u32) = (0, 5);

/// What a retain does to a bank, in order.
pub(super) enum Change {
    /// A document is stored.
    Adds {
        /// Which of the retain's entries it is of.
        entry: u32,
        id: String,
        session: String,
        text: String,
        vector: Vec<f32>,
    },
    /// The newest document of an id is found no more.
    Removes { entry: u32, id: String },
}

/// A document as it is found.
pub(super) struct Found {
    pub(super) id: String,
    pub(super) session: String,
    pub(super) text: String,
    pub(super) score: f64,
}

/// What is searched for.
pub(super) struct Wanted<'a> {
    pub(super) vector: &'a [f32],
    pub(super) k: u32,
    /// Entries that may be seen.
    pub(super) visible: u32,
    /// The only ids that may be found, where not all may.
    pub(super) among: Option<&'a [String]>,
}

/// The part of a database that belongs to a run.
pub(super) struct Database {
    schema: String,
    index: Index,
    /// Where it is, unless the variable says it.
    url: Option<String>,
    pool: OnceCell<PgPool>,
}

fn hashed(begin: &str, name: &str) -> String {
    format!("{begin}_{}", &Sha256Hash::of(name.as_bytes()).hex()[..24])
}

fn sql(text: String) -> AssertSqlSafe<String> {
    AssertSqlSafe(text)
}

impl Database {
    /// That of a run; nothing is connected.
    pub(super) fn of_run(run: &str, index: Index, url: Option<String>) -> Self {
        Self { schema: hashed("bench", run), index, url, pool: OnceCell::new() }
    }

    fn table(&self, bank: &str) -> String {
        format!("{}.{}", self.schema, hashed("bank", bank))
    }

    /// Host and port, where they are known.
    pub(super) fn place(&self) -> String {
        let options = self.url().and_then(|url| url.parse::<PgConnectOptions>().ok());
        options.map_or_else(String::new, |options| format!("{}:{}", options.get_host(), options.get_port()))
    }

    fn url(&self) -> Option<String> {
        self.url.clone().or_else(|| std::env::var(URL_VARIABLE).ok())
    }

    /// The connections, once the server has what is needed.
    async fn pool(&self) -> Result<&PgPool, Failure> {
        self.pool.get_or_try_init(|| self.connect()).await
    }

    async fn connect(&self) -> Result<PgPool, Failure> {
        let url = self.url().ok_or_else(|| {
            let message = format!(
                "pgvector: set {URL_VARIABLE} to the URL of a PostgreSQL database with the extension vector, such as postgres://user@host/database"
            );
            Failure::terminal(NOT_INSTALLED, message)
        })?;
        // what is wrong with a URL may quote it
        let options: PgConnectOptions = url.parse().map_err(|_| {
            Failure::terminal(NOT_INSTALLED, format!("pgvector: {URL_VARIABLE} is no URL of a PostgreSQL database"))
        })?;
        // a pool tries again and again, and says no more than that it had no time left
        let first = tokio::time::timeout(CONNECTED_WITHIN, options.connect()).await;
        let late = |_| Failure::transient("system_timeout", "connect: PostgreSQL does not answer".to_owned());
        drop(first.map_err(late)?.map_err(|error| failed("connect", &error))?);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(CONNECTED_WITHIN)
            // a connection that has broken is found out by who uses it, without asking before each statement
            .test_before_acquire(false)
            .connect_lazy_with(options);
        let version = extension(&pool).await?;
        if self.index == Index::Hnsw && !has_hnsw(&version) {
            let message = format!(
                "pgvector: the server's extension vector is {version}, and pgvector.index=hnsw needs 0.5 or newer: use \
                 pgvector.index=exact, or install a newer one"
            );
            return Err(Failure::terminal(NOT_INSTALLED, message));
        }
        Ok(pool)
    }

    /// The versions of extension and server.
    pub(super) async fn versions(&self) -> Result<(String, String), Failure> {
        let pool = self.pool().await?;
        let server: String = sqlx::query_scalar("SHOW server_version")
            .fetch_one(pool)
            .await
            .map_err(|error| failed("health", &error))?;
        let server = server.split_whitespace().next().unwrap_or_default().to_owned();
        Ok((extension(pool).await?, server))
    }

    /// Makes a bank, empty.
    pub(super) async fn open(&self, bank: &str) -> Result<(), Failure> {
        let opened = async {
            let mut tx = self.pool().await.map_err(Trouble::Known)?.begin().await?;
            self.alone(&mut tx).await?;
            let schema = &self.schema;
            sqlx::query(sql(format!("CREATE SCHEMA IF NOT EXISTS {schema}"))).execute(&mut *tx).await?;
            let banks =
                format!("CREATE TABLE IF NOT EXISTS {schema}.banks (name text PRIMARY KEY, entries bigint NOT NULL)");
            sqlx::query(sql(banks)).execute(&mut *tx).await?;
            sqlx::query(sql(format!("DROP TABLE IF EXISTS {}", self.table(bank)))).execute(&mut *tx).await?;
            let row = format!(
                "INSERT INTO {schema}.banks (name, entries) VALUES ($1, 0) ON CONFLICT (name) DO UPDATE SET entries = 0"
            );
            sqlx::query(sql(row)).bind(bank).execute(&mut *tx).await?;
            tx.commit().await?;
            Ok::<_, Trouble>(())
        };
        opened.await.map_err(|trouble| trouble.failure("open"))
    }

    /// Keeps other processes from changing what the run has while a transaction does.
    async fn alone(&self, tx: &mut Transaction<'_, Postgres>) -> Result<(), sqlx::Error> {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        sqlx::query(lock).bind(&self.schema).execute(&mut **tx).await.map(drop)
    }

    /// Stores what `entries` more entries bring.
    pub(super) async fn store(&self, bank: &str, entries: u32, changes: &[Change]) -> Result<(), Failure> {
        let stored = async {
            let mut tx = self.pool().await.map_err(Trouble::Known)?.begin().await?;
            let counted =
                format!("UPDATE {}.banks SET entries = entries + $2 WHERE name = $1 RETURNING entries", self.schema);
            let row = sqlx::query(sql(counted)).bind(bank).bind(i64::from(entries)).fetch_optional(&mut *tx).await?;
            let Some(row) = row else { return Err(Trouble::Lost) };
            let first = row.get::<i64, _>(0) - i64::from(entries);
            let dimensions = changes.iter().find_map(|change| match change {
                Change::Adds { vector, .. } => Some(vector.len()),
                Change::Removes { .. } => None,
            });
            if let Some(dimensions) = dimensions {
                self.make_table(&mut tx, bank, dimensions).await?;
            }
            let mut rest = changes;
            while let Some(change) = rest.first() {
                let added = rest.iter().take_while(|change| matches!(change, Change::Adds { .. })).count();
                if let Change::Removes { entry, id } = change {
                    self.remove_one(&mut tx, bank, first + i64::from(*entry), id).await?;
                } else {
                    self.add(&mut tx, bank, first, &rest[..added]).await?;
                }
                rest = &rest[added.max(1)..];
            }
            tx.commit().await?;
            Ok(())
        };
        stored.await.map_err(|trouble| trouble.failure("retain"))
    }

    async fn make_table(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        bank: &str,
        dimensions: usize,
    ) -> Result<(), sqlx::Error> {
        let table = self.table(bank);
        let columns = "n bigserial PRIMARY KEY, entry bigint NOT NULL, gone bigint, id text NOT NULL, session text NOT NULL, \
                       body bytea NOT NULL";
        let made = format!("CREATE TABLE IF NOT EXISTS {table} ({columns}, embedding vector({dimensions}) NOT NULL)");
        sqlx::query(sql(made)).execute(&mut **tx).await?;
        if self.index == Index::Hnsw {
            let name = hashed("near", bank);
            let index =
                format!("CREATE INDEX IF NOT EXISTS {name} ON {table} USING hnsw (embedding vector_cosine_ops)");
            sqlx::query(sql(index)).execute(&mut **tx).await?;
        }
        Ok(())
    }

    async fn add(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        bank: &str,
        first: i64,
        changes: &[Change],
    ) -> Result<(), sqlx::Error> {
        let (mut entries, mut ids, mut sessions) = (Vec::new(), Vec::new(), Vec::new());
        let (mut bodies, mut vectors) = (Vec::new(), Vec::new());
        for change in changes {
            if let Change::Adds { entry, id, session, text, vector } = change {
                entries.push(first + i64::from(*entry));
                ids.push(id.as_str());
                sessions.push(session.as_str());
                bodies.push(text.as_bytes());
                vectors.push(written(vector));
            }
        }
        let insert = format!(
            "INSERT INTO {} (entry, id, session, body, embedding) \
             SELECT entry, id, session, body, embedding::vector FROM \
             UNNEST($1::bigint[], $2::text[], $3::text[], $4::bytea[], $5::text[]) WITH ORDINALITY \
             AS given(entry, id, session, body, embedding, at) ORDER BY at",
            self.table(bank)
        );
        let insert = sqlx::query(sql(insert)).bind(entries).bind(ids).bind(sessions).bind(bodies).bind(vectors);
        insert.execute(&mut **tx).await.map(drop)
    }

    async fn remove_one(
        &self,
        tx: &mut Transaction<'_, Postgres>,
        bank: &str,
        entry: i64,
        id: &str,
    ) -> Result<(), sqlx::Error> {
        let table = self.table(bank);
        let there: Option<String> =
            sqlx::query_scalar("SELECT to_regclass($1)::text").bind(&table).fetch_one(&mut **tx).await?;
        if there.is_none() {
            return Ok(());
        }
        let remove = format!(
            "UPDATE {table} SET gone = $1 WHERE n = (SELECT max(n) FROM {table} WHERE id = $2 AND gone IS NULL)"
        );
        sqlx::query(sql(remove)).bind(entry).bind(id).execute(&mut **tx).await.map(drop)
    }

    /// The nearest documents by cosine, best first; equal ones in the order in which they were stored.
    pub(super) async fn nearest(&self, bank: &str, wanted: &Wanted<'_>) -> Result<Vec<Found>, Failure> {
        let visible = i64::from(wanted.visible);
        let query =
            sqlx::query(sql(self.select(bank, wanted.among.is_some()))).bind(written(wanted.vector)).bind(visible);
        let query = query.bind(i64::from(wanted.k));
        let query = match wanted.among {
            Some(among) => query.bind(among),
            None => query,
        };
        let found = async {
            let pool = self.pool().await.map_err(Trouble::Known)?;
            let rows = if self.index == Index::Hnsw && wanted.k > CANDIDATES {
                let mut tx = pool.begin().await?;
                let candidates = wanted.k.min(MOST_CANDIDATES);
                sqlx::query(sql(format!("SET LOCAL hnsw.ef_search = {candidates}"))).execute(&mut *tx).await?;
                let rows = query.fetch_all(&mut *tx).await?;
                tx.commit().await?;
                rows
            } else {
                query.fetch_all(pool).await?
            };
            rows.iter().map(read).collect::<Result<Vec<Found>, _>>().map_err(Trouble::Sql)
        };
        match found.await {
            Err(Trouble::Sql(error)) if is_no_table(&error) => self.nothing(bank).await.map(|()| Vec::new()),
            found => found.map_err(|trouble| trouble.failure("recall")),
        }
    }

    /// The statement that searches. A vector of zeros is as near to all others as one at a right angle; its distance is no number.
    fn select(&self, bank: &str, among: bool) -> String {
        let table = self.table(bank);
        let seen = "entry < $2 AND (gone IS NULL OR gone >= $2)";
        let among = if among { " AND id = ANY($4)" } else { "" };
        let distance = "embedding <=> $1::text::vector";
        match self.index {
            Index::Exact => format!(
                "SELECT id, session, body, distance FROM (SELECT n, id, session, body, \
                 coalesce(nullif({distance}, 'NaN'), 1) AS distance FROM {table} WHERE {seen}{among}) AS all_of_it \
                 ORDER BY distance, n LIMIT $3"
            ),
            Index::Hnsw => format!(
                "SELECT id, session, body, distance FROM (SELECT n, id, session, body, {distance} AS distance FROM {table} \
                 WHERE {seen}{among} ORDER BY {distance} LIMIT $3) AS near ORDER BY distance, n"
            ),
        }
    }

    /// Whether a bank without a table is one in which nothing was stored.
    async fn nothing(&self, bank: &str) -> Result<(), Failure> {
        let known = format!("SELECT entries FROM {}.banks WHERE name = $1", self.schema);
        let known = async {
            let pool = self.pool().await.map_err(Trouble::Known)?;
            sqlx::query(sql(known)).bind(bank).fetch_optional(pool).await.map_err(Trouble::Sql)
        };
        match known.await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Trouble::Lost.failure("recall")),
            Err(Trouble::Sql(error)) if is_no_table(&error) => Err(Trouble::Lost.failure("recall")),
            Err(trouble) => Err(trouble.failure("recall")),
        }
    }

    /// Documents that a bank has of its first entries.
    pub(super) async fn count(&self, bank: &str, visible: u32) -> Result<u64, Failure> {
        let counted =
            format!("SELECT count(*) FROM {} WHERE entry < $1 AND (gone IS NULL OR gone >= $1)", self.table(bank));
        let count = async {
            let pool = self.pool().await.map_err(Trouble::Known)?;
            let count: i64 = sqlx::query_scalar(sql(counted)).bind(i64::from(visible)).fetch_one(pool).await?;
            Ok::<_, Trouble>(count.unsigned_abs())
        };
        match count.await {
            Err(Trouble::Sql(error)) if is_no_table(&error) => self.nothing(bank).await.map(|()| 0),
            count => count.map_err(|trouble| trouble.failure("verify")),
        }
    }

    /// A page of the documents that a bank has of its first entries, in the order in which they were stored.
    pub(super) async fn list(&self, bank: &str, visible: u32, from: u64, most: u32) -> Result<Vec<Found>, Failure> {
        let page = format!(
            "SELECT id, session, body, 1::float8 AS distance FROM {} WHERE entry < $1 AND (gone IS NULL OR gone >= $1) \
             ORDER BY n OFFSET $2 LIMIT $3",
            self.table(bank)
        );
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let listed = async {
            let pool = self.pool().await.map_err(Trouble::Known)?;
            let page = sqlx::query(sql(page)).bind(i64::from(visible)).bind(from).bind(i64::from(most));
            let rows = page.fetch_all(pool).await?;
            rows.iter().map(read).collect::<Result<Vec<Found>, _>>().map_err(Trouble::Sql)
        };
        match listed.await {
            Err(Trouble::Sql(error)) if is_no_table(&error) => self.nothing(bank).await.map(|()| Vec::new()),
            listed => listed.map_err(|trouble| trouble.failure("list")),
        }
    }

    /// Removes a bank, and the schema with the last one.
    pub(super) async fn remove(&self, bank: &str) -> Result<(), Failure> {
        let removed = async {
            let mut tx = self.pool().await.map_err(Trouble::Known)?.begin().await?;
            self.alone(&mut tx).await?;
            let schema = &self.schema;
            let banks = format!("{schema}.banks");
            let there: Option<String> =
                sqlx::query_scalar("SELECT to_regclass($1)::text").bind(&banks).fetch_one(&mut *tx).await?;
            if there.is_none() {
                return Ok(());
            }
            sqlx::query(sql(format!("DROP TABLE IF EXISTS {}", self.table(bank)))).execute(&mut *tx).await?;
            sqlx::query(sql(format!("DELETE FROM {banks} WHERE name = $1"))).bind(bank).execute(&mut *tx).await?;
            let left: i64 =
                sqlx::query_scalar(sql(format!("SELECT count(*) FROM {banks}"))).fetch_one(&mut *tx).await?;
            if left == 0 {
                sqlx::query(sql(format!("DROP SCHEMA {schema} CASCADE"))).execute(&mut *tx).await?;
            }
            tx.commit().await?;
            Ok::<_, Trouble>(())
        };
        removed.await.map_err(|trouble| trouble.failure("reset"))
    }

    /// Lets go of the server.
    pub(super) async fn close(&self) {
        if let Some(pool) = self.pool.get() {
            pool.close().await;
        }
    }
}

fn read(row: &PgRow) -> Result<Found, sqlx::Error> {
    let body: Vec<u8> = row.try_get("body")?;
    let distance: f64 = row.try_get("distance")?;
    Ok(Found {
        id: row.try_get("id")?,
        session: row.try_get("session")?,
        text: String::from_utf8_lossy(&body).into_owned(),
        score: if distance.is_nan() { 0.0 } else { 1.0 - distance },
    })
}

/// A vector as the extension reads it.
fn written(vector: &[f32]) -> String {
    let mut text = String::with_capacity(vector.len() * 12 + 2);
    text.push('[');
    for (at, value) in vector.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&value.to_string());
    }
    text.push(']');
    text
}

/// The version of the extension, which is made in the database where it is not yet.
async fn extension(pool: &PgPool) -> Result<String, Failure> {
    let version = || async {
        let version = sqlx::query_scalar("SELECT extversion FROM pg_extension WHERE extname = 'vector'");
        version.fetch_optional(pool).await.map_err(|error| failed("connect", &error))
    };
    if let Some(version) = version().await? {
        return Ok(version);
    }
    let made = sqlx::query("CREATE EXTENSION IF NOT EXISTS vector").execute(pool).await;
    match (made, version().await?) {
        (_, Some(version)) => Ok(version),
        (made, None) => {
            let why = made.err().map_or_else(String::new, |error| match &error {
                sqlx::Error::Database(said) => format!(" ({})", said.message()),
                other => format!(" ({other})"),
            });
            let message = format!(
                "pgvector: the PostgreSQL server has no extension vector{why}: install it (Debian and Ubuntu: apt-get install \
                 postgresql-NN-pgvector, with the server's version for NN), then CREATE EXTENSION vector in the database"
            );
            Err(Failure::terminal(NOT_INSTALLED, message))
        }
    }
}

fn has_hnsw(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= FIRST_WITH_HNSW
}

/// What kept a statement from being done.
enum Trouble {
    Sql(sqlx::Error),
    Known(Failure),
    /// The bank is not there.
    Lost,
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl Trouble {
    fn failure(self, what: &str) -> Failure {
        match self {
            Self::Sql(error) => failed(what, &error),
            Self::Known(failure) => failure,
            Self::Lost => Failure::permanent(
                bench_proto::failure::code::MEMORIES_LOST,
                format!("{what}: the database has no such bank: another one was named, or it was removed"),
            ),
        }
    }
}

/// Whether a table or schema is not there.
fn is_no_table(error: &sqlx::Error) -> bool {
    error.as_database_error().and_then(|said| said.code()).is_some_and(|code| ["42P01", "3F000"].contains(&&*code))
}

/// What an error of the server means, by SQLSTATE: lost connections (08), lack of resources (53), conflicts (40, 55), shutdowns (57).
fn failed(what: &str, error: &sqlx::Error) -> Failure {
    let code = error.as_database_error().and_then(|said| said.code()).map(|code| code.into_owned());
    match (error, code.as_deref()) {
        (sqlx::Error::Database(said), Some(code)) => {
            let message = format!("{what}: PostgreSQL says: {}", said.message());
            match code.get(..2).unwrap_or_default() {
                "08" | "53" | "57" => Failure::transient("system_connection", message),
                "40" | "55" => Failure::transient("system_refused", message),
                "28" | "3D" => Failure::terminal("system_auth", format!("{message}; check {URL_VARIABLE}")),
                _ => Failure::permanent("system_refused", message),
            }
        }
        (sqlx::Error::Io(error), _) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Failure::transient(UNREACHABLE, format!("{what}: no PostgreSQL server listens there: {error}"))
        }
        (sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed, _) => {
            Failure::transient("system_connection", format!("{what}: the connection with PostgreSQL broke: {error}"))
        }
        _ => Failure::permanent("system_refused", format!("{what}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (version, has) in [("0.4.4", false), ("0.5.0", true), ("0.10.1", true), ("1.0", true), ("x", false)] {
            assert_eq!(has_hnsw(version), has, "{version}");
        }
    }

    #[test]
    fn vectors_are_written_whole() {
        assert_eq!(written(&[0.1, -2.0, 1.0e-9]), "[0.1,-2,0.000000001]");
        assert_eq!(written(&[]), "[]");
    }
}
