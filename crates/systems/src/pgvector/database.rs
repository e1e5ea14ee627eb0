//! The database of `pgvector`: a schema for each run, a table for each bank. In go documents with their vectors, out come the nearest.
//!
//! Whatever a statement names is made of hashes; everything else is bound. A transaction stores what one retain is given, with how
//! many entries the bank has then: a bank is never half of an entry further than it says. Whatever is asked of the server has its
//! time: one that stands still fails operations, and holds up nobody for ever.

use std::{sync::Once, time::Duration};

use bench_proto::{failure::Failure, ids::Sha256Hash, redact};
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, PgConnection, PgPool, Postgres, Row as _, Transaction,
    pool::PoolConnection,
    postgres::{PgConnectOptions, PgPoolOptions, PgRow},
};
use tokio::{
    sync::{OnceCell, Semaphore, SemaphorePermit},
    time::{error::Elapsed, timeout},
};

use super::{
    Index, URL_VARIABLE, extension,
    trouble::{CONNECTED_WITHIN, TIMEOUT, Trouble, failed, is_no_table},
};
use crate::NOT_INSTALLED;

/// Connections of this process with the database.
const CONNECTIONS: u32 = 16;
/// Longest time of what an operation asks of the server.
const DONE_WITHIN: Duration = Duration::from_secs(60);
/// Time more for each document that is stored: an index of the server's is built meanwhile.
const STORED_WITHIN: Duration = Duration::from_millis(100);
/// Longest wait of an operation for others to end: all connections are busy.
const TURN_WITHIN: Duration = Duration::from_secs(600);
/// Candidates that an index of the server's looks at of its own accord, and at most.
const CANDIDATES: u32 = 40;
const MOST_CANDIDATES: u32 = 1000;

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
    /// As many as there are connections: who waits for an operation to end is not late.
    turns: Semaphore,
    /// [`DONE_WITHIN`].
    within: Duration,
}

/// A connection for the time of an operation. Where it is dropped in the middle of one it is closed: handed back, it would wait for
/// what nobody wants any more.
struct Taken<'a> {
    connection: PoolConnection<Postgres>,
    is_idle: bool,
    _turn: SemaphorePermit<'a>,
}

impl Taken<'_> {
    /// What an operation over it has come to, if it ended in time.
    fn ended<T>(mut self, what: &str, done: Result<Result<T, Trouble>, Elapsed>) -> Result<T, Failure> {
        self.is_idle = done.is_ok();
        done.unwrap_or(Err(Trouble::Late)).map_err(|trouble| trouble.failure(what))
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if !self.is_idle {
            self.connection.close_on_drop();
        }
    }
}

fn hashed(begin: &str, name: &str) -> String {
    format!("{begin}_{}", &Sha256Hash::of_bytes(name.as_bytes()).hex()[..24])
}

fn sql(text: String) -> AssertSqlSafe<String> {
    AssertSqlSafe(text)
}

/// Warns, once in a process, of what the driver does not read of the URL: it says so itself, with the value.
fn tell_of_unread(url: &str) {
    static SAID: Once = Once::new();
    if let Some(unread) = redact::unread_of_postgres(url) {
        SAID.call_once(|| {
            tracing::warn!(
                "{URL_VARIABLE} has what nobody reads: {unread}; leave it out, and write & in a password as %26"
            );
        });
    }
}

impl Database {
    /// That of a run; nothing is connected.
    pub(super) fn of_run(run: &str, index: Index, url: Option<String>) -> Self {
        let turns = Semaphore::new(CONNECTIONS as usize);
        Self { schema: hashed("bench", run), index, url, pool: OnceCell::new(), turns, within: DONE_WITHIN }
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

    /// A connection, when it is the operation's turn.
    async fn take(&self, what: &str) -> Result<Taken<'_>, Failure> {
        let Ok(Ok(turn)) = timeout(TURN_WITHIN, self.turns.acquire()).await else {
            let message = format!("{what}: all {CONNECTIONS} connections were busy for {} s", TURN_WITHIN.as_secs());
            return Err(Failure::transient(TIMEOUT, message));
        };
        let pool = timeout(self.within, self.pool()).await.map_err(|_| Trouble::Late.failure(what))??;
        let connection = pool.acquire().await.map_err(|error| failed(what, &error))?;
        Ok(Taken { connection, is_idle: false, _turn: turn })
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
        tell_of_unread(&url);
        // a pool tries again and again, and says no more than that it had no time left
        let first = timeout(CONNECTED_WITHIN, options.connect()).await;
        let late = |_| Failure::transient(TIMEOUT, "connect: PostgreSQL does not answer".to_owned());
        let mut first = first.map_err(late)?.map_err(|error| failed("connect", &error))?;
        let version = extension::made(&mut first).await?;
        drop(first);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(CONNECTED_WITHIN)
            // a connection that has broken is found out by who uses it, without asking before each statement
            .test_before_acquire(false)
            .connect_lazy_with(options);
        if self.index == Index::Hnsw && !extension::has_hnsw(&version) {
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
        let mut taken = self.take("health").await?;
        let said = timeout(self.within, extension::versions(&mut taken.connection)).await;
        taken.ended("health", said)
    }

    /// Makes a bank, empty.
    pub(super) async fn open(&self, bank: &str) -> Result<(), Failure> {
        let mut taken = self.take("open").await?;
        let opened = timeout(self.within, self.opened(&mut taken.connection, bank)).await;
        taken.ended("open", opened)
    }

    async fn opened(&self, connection: &mut PgConnection, bank: &str) -> Result<(), Trouble> {
        let mut tx = connection.begin().await?;
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
        Ok(())
    }

    /// Keeps other processes from changing what the run has while a transaction does.
    async fn alone(&self, tx: &mut Transaction<'_, Postgres>) -> Result<(), sqlx::Error> {
        let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
        sqlx::query(lock).bind(&self.schema).execute(&mut **tx).await.map(drop)
    }

    /// Stores what `entries` more entries bring.
    pub(super) async fn store(&self, bank: &str, entries: u32, changes: &[Change]) -> Result<(), Failure> {
        let mut taken = self.take("retain").await?;
        let within = self.within + STORED_WITHIN * u32::try_from(changes.len()).unwrap_or(u32::MAX);
        let stored = timeout(within, self.stored(&mut taken.connection, bank, entries, changes)).await;
        taken.ended("retain", stored)
    }

    async fn stored(
        &self,
        connection: &mut PgConnection,
        bank: &str,
        entries: u32,
        changes: &[Change],
    ) -> Result<(), Trouble> {
        let mut tx = connection.begin().await?;
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
        let mut taken = self.take("recall").await?;
        let found = timeout(self.within, self.found(&mut taken.connection, bank, wanted)).await;
        taken.ended("recall", found)
    }

    /// What an index brings is filtered when it has chosen its candidates: where too little is left of these, all is looked through.
    async fn found(
        &self,
        connection: &mut PgConnection,
        bank: &str,
        wanted: &Wanted<'_>,
    ) -> Result<Vec<Found>, Trouble> {
        let mut found = self.searched(connection, bank, wanted, self.index).await;
        if self.index == Index::Hnsw && found.as_ref().is_ok_and(|found| found.len() < wanted.k as usize) {
            found = self.searched(connection, bank, wanted, Index::Exact).await;
        }
        match found {
            Err(error) if is_no_table(&error) => self.nothing(connection, bank).await.map(|()| Vec::new()),
            found => found.map_err(Trouble::Sql),
        }
    }

    async fn searched(
        &self,
        connection: &mut PgConnection,
        bank: &str,
        wanted: &Wanted<'_>,
        index: Index,
    ) -> Result<Vec<Found>, sqlx::Error> {
        let select = self.select(bank, index, wanted.among.is_some());
        let query = sqlx::query(sql(select)).bind(written(wanted.vector)).bind(i64::from(wanted.visible));
        let query = query.bind(i64::from(wanted.k));
        let query = match wanted.among {
            Some(among) => query.bind(among),
            None => query,
        };
        let rows = if index == Index::Hnsw && wanted.k > CANDIDATES {
            let mut tx = connection.begin().await?;
            let candidates = wanted.k.min(MOST_CANDIDATES);
            sqlx::query(sql(format!("SET LOCAL hnsw.ef_search = {candidates}"))).execute(&mut *tx).await?;
            let rows = query.fetch_all(&mut *tx).await?;
            tx.commit().await?;
            rows
        } else {
            query.fetch_all(&mut *connection).await?
        };
        rows.iter().map(read).collect()
    }

    /// The statement that searches. A vector of zeros is as near to all others as one at a right angle; its distance is no number. What is
    /// asked for is read once, by a statement of its own within: a plan that does not know it would read its text again for each row.
    fn select(&self, bank: &str, index: Index, among: bool) -> String {
        let table = self.table(bank);
        let seen = "entry < $2 AND (gone IS NULL OR gone >= $2)";
        let among = if among { " AND id = ANY($4)" } else { "" };
        let distance = "embedding <=> (SELECT $1::text::vector)";
        match index {
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
    async fn nothing(&self, connection: &mut PgConnection, bank: &str) -> Result<(), Trouble> {
        let known = format!("SELECT entries FROM {}.banks WHERE name = $1", self.schema);
        match sqlx::query(sql(known)).bind(bank).fetch_optional(&mut *connection).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Trouble::Lost),
            Err(error) if is_no_table(&error) => Err(Trouble::Lost),
            Err(error) => Err(Trouble::Sql(error)),
        }
    }

    /// Documents that a bank has of its first entries.
    pub(super) async fn count(&self, bank: &str, visible: u32) -> Result<u64, Failure> {
        let mut taken = self.take("verify").await?;
        let counted = timeout(self.within, self.counted(&mut taken.connection, bank, visible)).await;
        taken.ended("verify", counted)
    }

    async fn counted(&self, connection: &mut PgConnection, bank: &str, visible: u32) -> Result<u64, Trouble> {
        let count =
            format!("SELECT count(*) FROM {} WHERE entry < $1 AND (gone IS NULL OR gone >= $1)", self.table(bank));
        let count: Result<i64, sqlx::Error> =
            sqlx::query_scalar(sql(count)).bind(i64::from(visible)).fetch_one(&mut *connection).await;
        match count {
            Err(error) if is_no_table(&error) => self.nothing(connection, bank).await.map(|()| 0),
            count => Ok(count?.unsigned_abs()),
        }
    }

    /// A page of the documents that a bank has of its first entries, in the order in which they were stored.
    pub(super) async fn list(&self, bank: &str, visible: u32, from: u64, most: u32) -> Result<Vec<Found>, Failure> {
        let mut taken = self.take("list").await?;
        let listed = timeout(self.within, self.listed(&mut taken.connection, bank, visible, from, most)).await;
        taken.ended("list", listed)
    }

    async fn listed(
        &self,
        connection: &mut PgConnection,
        bank: &str,
        visible: u32,
        from: u64,
        most: u32,
    ) -> Result<Vec<Found>, Trouble> {
        let page = format!(
            "SELECT id, session, body, 1::float8 AS distance FROM {} WHERE entry < $1 AND (gone IS NULL OR gone >= $1) \
             ORDER BY n OFFSET $2 LIMIT $3",
            self.table(bank)
        );
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let page = sqlx::query(sql(page)).bind(i64::from(visible)).bind(from).bind(i64::from(most));
        match page.fetch_all(&mut *connection).await {
            Err(error) if is_no_table(&error) => self.nothing(connection, bank).await.map(|()| Vec::new()),
            rows => rows?.iter().map(read).collect::<Result<Vec<Found>, _>>().map_err(Trouble::Sql),
        }
    }

    /// Removes a bank, and the schema with the last one.
    pub(super) async fn remove(&self, bank: &str) -> Result<(), Failure> {
        let mut taken = self.take("reset").await?;
        let removed = timeout(self.within, self.removed(&mut taken.connection, bank)).await;
        taken.ended("reset", removed)
    }

    async fn removed(&self, connection: &mut PgConnection, bank: &str) -> Result<(), Trouble> {
        let mut tx = connection.begin().await?;
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
        let left: i64 = sqlx::query_scalar(sql(format!("SELECT count(*) FROM {banks}"))).fetch_one(&mut *tx).await?;
        if left == 0 {
            sqlx::query(sql(format!("DROP SCHEMA {schema} CASCADE"))).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Lets go of the server.
    pub(super) async fn close(&self) {
        if let Some(pool) = self.pool.get() {
            // a server that stands still does not say goodbye
            let _ = timeout(CONNECTED_WITHIN, pool.close()).await;
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

#[cfg(test)]
mod tests {
    use bench_testkit::postgres;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    #[test]
    fn vectors_are_written_whole() {
        assert_eq!(written(&[0.1, -2.0, 1.0e-9]), "[0.1,-2,0.000000001]");
        assert_eq!(written(&[]), "[]");
    }

    /// The URL of a server that greets whoever comes, and answers nothing else.
    async fn stalled() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let place = listener.local_addr().expect("it has a place");
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut said = [0; 4096];
                    let _ = socket.read(&mut said).await;
                    // AuthenticationOk, ReadyForQuery
                    let _ = socket.write_all(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I").await;
                    while socket.read(&mut said).await.is_ok_and(|n| n > 0) {}
                });
            }
        });
        format!("postgres://me@{place}/mine?sslmode=disable")
    }

    #[tokio::test]
    async fn a_server_that_stands_still_fails_operations_and_holds_up_none() {
        let within = Duration::from_millis(200);
        let url = stalled().await;
        let found_out = Database { within, ..Database::of_run("run", Index::Exact, Some(url.clone())) };
        let wanted = Wanted { vector: &[1.0], k: 1, visible: 1, among: None };
        let failure = found_out.nearest("bank", &wanted).await.err().expect("no answer comes");
        assert_eq!(failure.code.as_str(), TIMEOUT, "while it connects: {failure}");
        // it stands still later: the connections are there
        let options: PgConnectOptions = url.parse().expect("is a URL");
        let pool = PgPoolOptions::new().max_connections(CONNECTIONS).test_before_acquire(false);
        let connected = Database { within, ..Database::of_run("run", Index::Exact, None) };
        connected.pool.set(pool.connect_lazy_with(options)).expect("is empty");
        for ended in [
            connected.open("bank").await,
            connected.store("bank", 1, &[]).await,
            connected.nearest("bank", &wanted).await.map(drop),
            connected.count("bank", 1).await.map(drop),
            connected.list("bank", 1, 0, 1).await.map(drop),
            connected.remove("bank").await,
            connected.versions().await.map(drop),
        ] {
            assert_eq!(ended.err().map(|failure| failure.code).as_deref(), Some(TIMEOUT));
        }
        connected.close().await;
    }

    /// More at once than there are connections, each longer than a connection is waited for: who waits for its turn is not late.
    #[tokio::test]
    async fn whoever_waits_for_others_to_end_is_not_late() {
        let url = stalled().await;
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(Duration::from_millis(500));
        let busy = Database {
            within: Duration::from_millis(700),
            turns: Semaphore::new(1),
            ..Database::of_run("run", Index::Exact, None)
        };
        busy.pool.set(pool.connect_lazy_with(url.parse().expect("is a URL"))).expect("is empty");
        let (one, other) = tokio::join!(busy.count("bank", 1), busy.count("bank", 1));
        for ended in [one, other] {
            let failure = ended.expect_err("no answer comes");
            assert!(failure.message.contains("has not answered"), "both were asked: {failure}");
        }
    }

    /// Three thousand rows, of which those that may be found are the farthest: an index's candidates are all among the others.
    #[tokio::test]
    async fn what_an_index_filters_afterwards_is_looked_for_in_all_there_is() {
        let url = postgres::with_vector().create_database().expect("a database");
        // the planner takes the index for so few rows too
        let url = format!("{url}?options[enable_seqscan]=off&options[enable_sort]=off");
        let database = Database::of_run("filters", Index::Hnsw, Some(url));
        database.open("bank").await.expect("is opened");
        let at = |n: u32, angle: f32| Change::Adds {
            entry: n,
            id: format!("m{n}"),
            session: String::new(),
            text: String::new(),
            vector: vec![angle.cos(), angle.sin()],
        };
        let far = (0..50).map(|n| at(n, 1.0 + n as f32 / 100.0));
        let near = (50..3_000).map(|n| at(n, n as f32 / 10_000.0));
        let changes: Vec<Change> = far.chain(near).collect();
        database.store("bank", 3_000, &changes).await.expect("is stored");
        let found = |visible: u32, among: Option<Vec<String>>| {
            let database = &database;
            async move {
                let wanted = Wanted { vector: &[1.0, 0.0], k: 10, visible, among: among.as_deref() };
                let found = database.nearest("bank", &wanted).await.expect("is searched");
                found.into_iter().map(|found| found.id).collect::<Vec<_>>()
            }
        };
        let first: Vec<String> = (0..10).map(|n| format!("m{n}")).collect();
        assert_eq!(found(50, None).await, first, "the others come later");
        let few = first.iter().rev().chain([&"m49".to_owned()]).cloned().collect();
        assert_eq!(found(3_000, Some(few)).await, first, "no others are wanted");
        assert_eq!(found(3_000, None).await.len(), 10);
    }
}
