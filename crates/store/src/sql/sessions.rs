//! Worker sessions (P4).

use async_trait::async_trait;
use bench_proto::{outage::SessionEvidence, session::SessionEvent, task::TaskState};

use super::{
    Backend, Conn, Row, Sql, SqlStore, args,
    guards::session_allowed,
    incarnations::{CURRENT, never_given},
    money,
    tasks::{Holder, lose_leases},
};
use crate::{
    Renewal, SessionId, SessionRow, Sessions, StoreResult, Told,
    codec::{escape, unescape},
};

static END: Sql = Sql::new(|| {
    format!("UPDATE sessions SET ended_us = @now WHERE session_id = $1 AND {}", session_allowed(SessionEvent::Stopped))
});

async fn end(conn: &mut dyn Conn, session: SessionId) -> StoreResult<u64> {
    static LOCK: Sql = Sql::new(|| "SELECT session_id FROM sessions WHERE session_id = $1".to_owned());
    // claims of the session lock its row too: none of them can slip in between the two statements
    conn.lock(&LOCK, args![session.0]).await?;
    conn.execute(&END, args![session.0]).await?;
    static FORGET: Sql = Sql::new(|| "DELETE FROM session_marks WHERE session_id = $1".to_owned());
    let lost = lose_leases(conn, Holder::Session(session)).await?;
    conn.execute(&FORGET, args![session.0]).await?;
    money::lose_session(conn, session).await?;
    Ok(lost)
}

#[async_trait]
impl<B: Backend> Sessions for SqlStore<B> {
    async fn open_session(&self, worker: &str, domain: &str, info_json: &str) -> StoreResult<SessionId> {
        static OPEN: Sql = Sql::new(|| {
            "INSERT INTO sessions (session_id, worker, domain, info, counter, opened_us, renewed_us) \
             VALUES ($1, $2, $3, $4, 0, @now, @now)"
                .to_owned()
        });
        let session = SessionId(never_given());
        self.execute(&OPEN, args![session.0, escape(worker), escape(domain), escape(info_json)]).await?;
        Ok(session)
    }

    async fn renew_session(&self, session: SessionId, evidence: Option<&str>) -> StoreResult<Renewal> {
        fn renew(tells: &str) -> String {
            format!(
                "UPDATE sessions SET counter = counter + 1, renewed_us = @now{tells} WHERE session_id = $1 AND {} \
                 RETURNING counter, COALESCE((SELECT m.mark FROM session_marks AS m WHERE m.session_id = $1), 0), {CURRENT}",
                session_allowed(SessionEvent::Renewed)
            )
        }
        static RENEW: Sql = Sql::new(|| renew(""));
        static TELL: Sql = Sql::new(|| renew(", evidence = $2, evidence_us = @now"));
        static KNOWN: Sql = Sql::new(|| "SELECT session_id FROM sessions WHERE session_id = $1".to_owned());
        let told = evidence.map(escape);
        let renewed = self
            .backend
            .change(move |conn| match told {
                None => conn.fetch(&RENEW, args![session.0]),
                Some(told) => conn.fetch(&TELL, args![session.0, told]),
            })
            .await?;
        if let Some(row) = renewed.first() {
            return Ok(Renewal::Alive(Told { counter: row.int(0)?, mark: row.int(1)?, incarnation: row.int(2)? }));
        }
        let known = !self.fetch(&KNOWN, args![session.0]).await?.is_empty();
        Ok(if known { Renewal::Ended } else { Renewal::Unknown })
    }

    async fn end_session(&self, session: SessionId) -> StoreResult<u64> {
        self.backend.write(move |conn| Box::pin(end(conn, session))).await
    }

    async fn close_session(&self, session: SessionId) -> StoreResult<()> {
        self.execute(&END, args![session.0]).await.map(drop)
    }

    async fn open_sessions(&self, domain: &str) -> StoreResult<Vec<SessionRow>> {
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT s.session_id, s.worker, s.info, s.counter, @now - s.renewed_us, \
                 (SELECT count(*) FROM tasks AS t WHERE t.session = s.session_id AND t.state = {}), \
                 s.evidence, @now - s.evidence_us \
                 FROM sessions AS s WHERE s.domain = $1 AND s.ended_us IS NULL ORDER BY s.opened_us, s.session_id",
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
