//! Worker sessions (P4).

use async_trait::async_trait;
use bench_proto::{outage::SessionEvidence, task::TaskState};

use super::{
    Backend, Conn, Row, Sql, SqlStore, args, money,
    tasks::{Holder, lose_leases},
};
use crate::{
    SessionId, SessionRow, Sessions, StoreError, StoreResult,
    codec::{escape, unescape},
};

async fn end(conn: &mut dyn Conn, session: SessionId) -> StoreResult<u64> {
    static LOCK: Sql = Sql::new(|| "SELECT session_id FROM sessions WHERE session_id = $1".to_owned());
    static END: Sql =
        Sql::new(|| "UPDATE sessions SET ended_us = @now WHERE session_id = $1 AND ended_us IS NULL".to_owned());
    // claims of the session lock its row too: none of them can slip in between the two statements
    conn.lock(&LOCK, args![session.0]).await?;
    conn.execute(&END, args![session.0]).await?;
    let lost = lose_leases(conn, Holder::Session(session)).await?;
    money::lose_session(conn, session).await?;
    Ok(lost)
}

#[async_trait]
impl<B: Backend> Sessions for SqlStore<B> {
    async fn open_session(&self, worker: &str, domain: &str, info_json: &str) -> StoreResult<SessionId> {
        static OPEN: Sql = Sql::new(|| {
            "INSERT INTO sessions (worker, domain, info, counter, opened_us, renewed_us) VALUES ($1, $2, $3, 0, @now, @now) RETURNING session_id"
                .to_owned()
        });
        let args = args![escape(worker), escape(domain), escape(info_json)];
        let rows = self.backend.write(move |conn| conn.fetch(&OPEN, args)).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("a new session has no number".to_owned()))?;
        row.int(0).map(SessionId)
    }

    async fn renew_session(&self, session: SessionId, evidence: Option<&str>) -> StoreResult<bool> {
        static RENEW: Sql = Sql::new(|| {
            "UPDATE sessions SET counter = counter + 1, renewed_us = @now WHERE session_id = $1 AND ended_us IS NULL"
                .to_owned()
        });
        static TELL: Sql = Sql::new(|| {
            "UPDATE sessions SET counter = counter + 1, renewed_us = @now, evidence = $2, evidence_us = @now \
             WHERE session_id = $1 AND ended_us IS NULL"
                .to_owned()
        });
        let renewed = match evidence {
            None => self.execute(&RENEW, args![session.0]).await?,
            Some(evidence) => self.execute(&TELL, args![session.0, escape(evidence)]).await?,
        };
        Ok(renewed > 0)
    }

    async fn end_session(&self, session: SessionId) -> StoreResult<u64> {
        self.backend.write(move |conn| Box::pin(end(conn, session))).await
    }

    async fn open_sessions(&self, domain: &str) -> StoreResult<Vec<SessionRow>> {
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT s.session_id, s.worker, s.info, s.counter, @now - s.renewed_us, \
                 (SELECT count(*) FROM tasks AS t WHERE t.session = s.session_id AND t.state = {}), \
                 s.evidence, @now - s.evidence_us \
                 FROM sessions AS s WHERE s.domain = $1 AND s.ended_us IS NULL ORDER BY s.session_id",
                TaskState::Leased.code()
            )
        });
        let rows = self.fetch(&SELECT, args![escape(domain)]).await?;
        let read = |mut row: Row| {
            Ok(SessionRow {
                session: SessionId(row.int(0)?),
                worker: unescape(row.text(1)?),
                info_json: unescape(row.text(2)?),
                counter: row.int(3)?,
                silent_ms: (row.int(4)? / 1000).max(0),
                leased: row.int(5)?,
                evidence: {
                    let age_ms = u64::try_from(row.int(7)? / 1000).unwrap_or(0);
                    SessionEvidence::from_json(&unescape(row.text(6)?), age_ms)
                },
            })
        };
        rows.into_iter().map(read).collect()
    }
}
