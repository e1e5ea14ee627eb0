//! Statements over a Postgres connection: binding batches, reading rows, noticing that nobody answers.

use std::{
    future::Future,
    pin::pin,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use sqlx::{
    Arguments as _, AssertSqlSafe, Decode, PgConnection, Postgres,
    error::BoxDynError,
    postgres::{PgArguments, PgValueRef},
};
use tokio::time::timeout;

use super::{errors, place::Destination, pool::Connection};
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
pub(super) struct PostgresConn<'c> {
    conn: &'c mut PgConnection,
    /// What goes with a commit, in the order in which it was prepared: number n is `last_n`.
    prepared: &'c mut Vec<&'static str>,
    place: &'c Destination,
    /// Statements are prepared under a name and kept; not behind a pooler, where the next one may meet another server.
    named: bool,
    /// Statements that go with the commit.
    last: String,
    pub(super) state: State,
}

/// What the statements so far have left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// All statements worked.
    Sound,
    /// One was refused: what is open cannot be committed.
    Refused,
    /// The connection is no longer usable.
    Lost,
}

impl<'c> PostgresConn<'c> {
    pub(super) fn new(connection: &'c mut Connection, place: &'c Destination, named: bool) -> Self {
        let Connection { conn, prepared } = connection;
        Self { conn, prepared, place, named, last: String::new(), state: State::Sound }
    }

    /// Runs statements without arguments.
    pub(super) async fn raw(&mut self, text: &'static str) -> StoreResult<()> {
        let done = slow::told(SYSTEM, text, watched(self.place, sqlx::raw_sql(text).execute(&mut *self.conn))).await;
        self.note(done).map(drop)
    }

    /// Commits, with what was left to the last.
    pub(super) async fn commit(&mut self) -> StoreResult<()> {
        if self.last.is_empty() {
            return self.raw("COMMIT").await;
        }
        let text = std::mem::take(&mut self.last) + "COMMIT";
        let done = watched(self.place, sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut *self.conn)).await;
        self.note(done).map(drop)
    }

    /// The number of a statement that goes with commits. A message of several statements cannot use what the client library
    /// has prepared, and would be planned each time.
    async fn prepared(&mut self, text: &'static str) -> StoreResult<usize> {
        if let Some(number) = self.prepared.iter().position(|known| std::ptr::eq(*known, text)) {
            return Ok(number);
        }
        let number = self.prepared.len();
        let prepare = AssertSqlSafe(format!("PREPARE last_{number} AS {text}"));
        let done = watched(self.place, sqlx::raw_sql(prepare).execute(&mut *self.conn)).await;
        self.note(done)?;
        self.prepared.push(text);
        Ok(number)
    }

    fn note<T>(&mut self, outcome: Result<T, (State, StoreError)>) -> StoreResult<T> {
        outcome.map_err(|(state, error)| {
            self.state = state;
            error
        })
    }

    async fn read(&mut self, text: &'static str, args: Args) -> StoreResult<Vec<Row>> {
        let query = sqlx::query_with(text, bind(args)?).persistent(self.named);
        let rows = slow::told(SYSTEM, text, watched(self.place, query.fetch_all(&mut *self.conn))).await;
        self.note(rows)?.iter().map(|row| Row::read(row, cell)).collect()
    }

    async fn run(&mut self, text: &'static str, args: Args) -> StoreResult<u64> {
        let query = sqlx::query_with(text, bind(args)?).persistent(self.named);
        let done = slow::told(SYSTEM, text, watched(self.place, query.execute(&mut *self.conn))).await;
        self.note(done).map(|done| done.rows_affected())
    }
}

#[async_trait]
impl Conn for PostgresConn<'_> {
    async fn fetch(&mut self, sql: &'static Sql, args: Args) -> StoreResult<Vec<Row>> {
        self.read(&sql.expanded(Dialect::Postgres).text, args).await
    }

    async fn execute(&mut self, sql: &'static Sql, args: Args) -> StoreResult<u64> {
        self.run(&sql.expanded(Dialect::Postgres).text, args).await
    }

    async fn lock(&mut self, sql: &'static Sql, args: Args) -> StoreResult<()> {
        self.run(sql.locking(), args).await.map(drop)
    }

    async fn fetch_locked(&mut self, sql: &'static Sql, args: Args) -> StoreResult<Vec<Row>> {
        self.read(sql.locking(), args).await
    }

    async fn at_last(&mut self, sql: &'static Sql, args: Args) -> StoreResult<()> {
        let (text, literals) = (&sql.expanded(Dialect::Postgres).text, literals(args)?);
        let statement = if self.named {
            format!("EXECUTE last_{} ({})", self.prepared(text).await?, literals.join(", "))
        } else {
            with_literals(text, &literals)?
        };
        self.last.push_str(&statement);
        self.last.push_str("; ");
        Ok(())
    }
}

/// Waits for an answer of the server, but not for one that cannot come: when it is quiet for long, it is asked over a new
/// connection whether it is there. (The client library does not let us set keepalives on its socket.)
async fn watched<T>(
    place: &Destination,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, (State, StoreError)> {
    let sorted = |error: sqlx::Error| {
        (if errors::is_lost(&error) { State::Lost } else { State::Refused }, errors::store_error(&error))
    };
    let lost = |why: String| Err((State::Lost, StoreError::Unavailable(why.into())));
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

/// Arguments as text. A message of several statements has none of its own; numbers need no quoting.
fn literals(args: Args) -> StoreResult<Vec<String>> {
    let mut literals = Vec::new();
    for arg in args {
        match arg {
            Arg::Int(None) => literals.push("NULL::int8".to_owned()),
            Arg::Int(Some(value)) => literals.push(format!("'{value}'::int8")),
            Arg::Real(value) => literals.push(format!("'{value:?}'::float8")),
            Arg::Rows(Batch { columns }) => {
                for column in columns {
                    let Column::Int(values) = column else { return Err(not_a_number()) };
                    let values: Vec<String> = values.iter().map(i64::to_string).collect();
                    literals.push(format!("'{{{}}}'::int8[]", values.join(",")));
                }
            }
            Arg::Text(_) | Arg::Blob(_) => return Err(not_a_number()),
        }
    }
    Ok(literals)
}

fn not_a_number() -> StoreError {
    StoreError::BadData("only numbers go with a commit".to_owned())
}

/// A statement with its arguments in their places.
fn with_literals(text: &str, literals: &[String]) -> StoreResult<String> {
    let mut parts = text.split('$');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: usize = part[..digits].parse().unwrap_or(0);
        let value = number.checked_sub(1).and_then(|place| literals.get(place));
        let missing = || StoreError::BadData(format!("a statement has no argument {number}"));
        whole.push_str(value.ok_or_else(missing)?);
        whole.push_str(&part[digits..]);
    }
    Ok(whole)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::args;

    #[test]
    fn numbers_stand_in_their_places() {
        let rows = Batch::default().int([1, -2]).int([0, i64::MIN]);
        let mut all = args![7_i64, 0.1_f64, rows];
        all.extend((0..6).map(|n| Arg::from(n * 100_i64)));
        let all = literals(all).expect("numbers only");
        assert_eq!(
            with_literals("f($2, $1, UNNEST($3::int8[], $4::int8[])) + $10", &all).expect("all are there"),
            "f('0.1'::float8, '7'::int8, UNNEST('{1,-2}'::int8[]::int8[], '{0,-9223372036854775808}'::int8[]::int8[])) \
             + '500'::int8"
        );
        assert!(literals(args!["text"]).is_err());
        assert!(with_literals("f($2)", &all[..1]).is_err());
    }
}
