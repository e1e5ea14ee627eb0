//! Breakers of memory systems: one row per system and operation, locked while somebody is answered.

use async_trait::async_trait;

use super::{Backend, Conn, Sql, SqlStore, args};
use crate::{BreakerEvent, BreakerState, Breakers, StoreError, StoreResult, breaker::BreakerRow, codec::escape};

async fn take(
    conn: &mut dyn Conn,
    system: String,
    operation: String,
    event: BreakerEvent,
) -> StoreResult<BreakerState> {
    // makes the row when it is not there, and locks it: the clock is read by the next statement, after the wait
    static LOCK: Sql = Sql::new(|| {
        "INSERT INTO breakers (system, operation) VALUES ($1, $2) \
         ON CONFLICT (system, operation) DO UPDATE SET failures = breakers.failures"
            .to_owned()
    });
    static READ: Sql = Sql::new(|| {
        "SELECT failures, opened, until_us, trying, @now FROM breakers WHERE system = $1 AND operation = $2".to_owned()
    });
    static WRITE: Sql = Sql::new(|| {
        "UPDATE breakers SET failures = $3, opened = $4, until_us = $5, trying = $6 WHERE system = $1 AND operation = $2"
            .to_owned()
    });
    conn.execute(&LOCK, args![system.as_str(), operation.as_str()]).await?;
    let rows = conn.fetch(&READ, args![system.as_str(), operation.as_str()]).await?;
    let row = rows.first().ok_or_else(|| StoreError::Missing("the breaker of a system".to_owned()))?;
    let mut breaker =
        BreakerRow { failures: row.int(0)?, opened: row.int(1)?, until_us: row.int(2)?, trying: row.int(3)? != 0 };
    let state = breaker.take(row.int(4)?, event);
    let args = args![system, operation, breaker.failures, breaker.opened, breaker.until_us, i64::from(breaker.trying)];
    conn.execute(&WRITE, args).await?;
    Ok(state)
}

#[async_trait]
impl<B: Backend> Breakers for SqlStore<B> {
    async fn breaker(&self, system: &str, operation: &str, event: BreakerEvent) -> StoreResult<BreakerState> {
        let (system, operation) = (escape(system), escape(operation));
        self.backend.write(move |conn| Box::pin(take(conn, system, operation, event))).await
    }
}
