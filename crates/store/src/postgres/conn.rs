//! Statements over a Postgres connection: binding batches, reading rows, noticing that nobody answers.

use std::{
    future::Future,
    pin::pin,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use sqlx::{
    Arguments as _, Decode, PgConnection, Postgres,
    error::BoxDynError,
    postgres::{PgArguments, PgValueRef},
};
use tokio::time::timeout;

use super::{errors, place::Place};
use crate::{
    StoreError, StoreResult, slow,
    sql::{Arg, Args, Batch, Cell, Column, Conn, Dialect, Row, Sql},
};

/// A statement that takes longer makes the server be asked, over a connection of its own, whether it is there.
const QUIET: Duration = Duration::from_millis(2_500);
/// OpenTelemetry's name of this store.
const SYSTEM: &str = "postgresql";
/// Longest statement on the server; the client gives up a little later.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// A connection in use.
pub(super) struct Link<'c> {
    conn: &'c mut PgConnection,
    place: &'c Place,
    /// Statements are prepared under a name and kept; not behind a pooler, where the next one may meet another server.
    named: bool,
    pub(super) state: State,
}

/// What the statements so far have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// All of them worked.
    Sound,
    /// One was refused: what is open cannot be committed.
    Refused,
    /// The connection is no longer usable.
    Lost,
}

impl<'c> Link<'c> {
    pub(super) fn new(conn: &'c mut PgConnection, place: &'c Place, named: bool) -> Self {
        Self { conn, place, named, state: State::Sound }
    }

    /// Runs statements without arguments.
    pub(super) async fn raw(&mut self, text: &'static str) -> StoreResult<()> {
        let done = slow::told(SYSTEM, text, watched(self.place, sqlx::raw_sql(text).execute(&mut *self.conn))).await;
        self.note(done).map(drop)
    }

    fn note<T>(&mut self, outcome: Result<T, (State, StoreError)>) -> StoreResult<T> {
        outcome.map_err(|(state, error)| {
            self.state = state;
            error
        })
    }

    async fn run(&mut self, text: &'static str, args: Args) -> StoreResult<u64> {
        let query = sqlx::query_with(text, bind(args)?).persistent(self.named);
        let done = slow::told(SYSTEM, text, watched(self.place, query.execute(&mut *self.conn))).await;
        self.note(done).map(|done| done.rows_affected())
    }
}

#[async_trait]
impl Conn for Link<'_> {
    async fn fetch(&mut self, sql: &'static Sql, args: Args) -> StoreResult<Vec<Row>> {
        let text = sql.expanded(Dialect::Postgres).text.as_str();
        let query = sqlx::query_with(text, bind(args)?).persistent(self.named);
        let rows = slow::told(SYSTEM, text, watched(self.place, query.fetch_all(&mut *self.conn))).await;
        self.note(rows)?.iter().map(|row| Row::read(row, cell)).collect()
    }

    async fn execute(&mut self, sql: &'static Sql, args: Args) -> StoreResult<u64> {
        self.run(&sql.expanded(Dialect::Postgres).text, args).await
    }

    async fn lock(&mut self, sql: &'static Sql, args: Args) -> StoreResult<()> {
        self.run(sql.locking(), args).await.map(drop)
    }
}

/// Waits for an answer of the server, but not for one that cannot come: when it is quiet for long, it is asked over a new
/// connection whether it is there. (The client library does not let us set keepalives on its socket.)
async fn watched<T>(
    place: &Place,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, (State, StoreError)> {
    let sorted =
        |error: sqlx::Error| (if errors::is_lost(&error) { State::Lost } else { State::Refused }, errors::of(&error));
    let lost = |why: String| Err((State::Lost, StoreError::Unavailable(why)));
    let mut answer = pin!(answer);
    let began = Instant::now();
    loop {
        if let Ok(answered) = timeout(QUIET, &mut answer).await {
            return answered.map_err(sorted);
        }
        if began.elapsed() > LONGEST + QUIET {
            return lost(format!("{place} has not answered for {} s", LONGEST.as_secs()));
        }
        tokio::select! {
            answered = &mut answer => return answered.map_err(sorted),
            answers = place.answers() => if !answers {
                return lost(format!("{place} cannot be reached any more"));
            }
        }
    }
}

fn bind(args: Args) -> StoreResult<PgArguments> {
    let mut arguments = PgArguments::default();
    for arg in args {
        match arg {
            Arg::Int(value) => arguments.add(value),
            Arg::Real(value) => arguments.add(value),
            Arg::Text(value) => arguments.add(value),
            Arg::Blob(value) => arguments.add(value),
            Arg::Rows(Batch { columns }) => columns.into_iter().try_for_each(|column| match column {
                Column::Int(values) => arguments.add(values),
                Column::Text(values) => arguments.add(values),
                Column::Blob(values) => arguments.add(values),
            }),
        }
        .map_err(|e| StoreError::BadData(e.to_string()))?;
    }
    Ok(arguments)
}

fn cell(kind: &str, value: PgValueRef<'_>) -> Result<Option<Cell>, BoxDynError> {
    Ok(Some(match kind {
        "INT8" => Cell::Int(Decode::<Postgres>::decode(value)?),
        "INT4" => Cell::Int(<i32 as Decode<Postgres>>::decode(value)?.into()),
        "INT2" => Cell::Int(<i16 as Decode<Postgres>>::decode(value)?.into()),
        "FLOAT8" => Cell::Real(Decode::<Postgres>::decode(value)?),
        "TEXT" => Cell::Text(Decode::<Postgres>::decode(value)?),
        "BYTEA" => Cell::Blob(Decode::<Postgres>::decode(value)?),
        _ => return Ok(None),
    }))
}
