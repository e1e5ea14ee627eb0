//! A store that went back in time (P44): its incarnation, and bringing back what it has forgotten.

use async_trait::async_trait;
use bench_proto::{ids::RunNo, money::PicoUsd, session::SessionEvent, task::TaskState};
use uuid::Uuid;

use super::{
    Backend, Batch, CHUNK, Conn, Row, Sql, SqlStore, args, codes, events::note_event, guards::session_allowed, money,
};
use crate::{
    ClaimedTask, CommitMark, Incarnation, Incarnations, LiveSession, RunState, SessionId, StoreError, StoreResult,
    WENT_BACK_EVENT, Want,
    codec::{escape, unescape},
};

/// The current incarnation, as part of a statement.
pub(super) const CURRENT: &str = "(SELECT i.incarnation FROM incarnations AS i)";

/// What the names of a new bank hold beside its number: the store's own number, and its incarnation where it has gone back in time.
pub(super) const NAMESPACES: &str = "(SELECT '0:' || i.identity || ' ' || CASE WHEN i.incarnation = 0 THEN '' \
    ELSE '1:' || i.incarnation || ' ' END FROM incarnations AS i)";

/// Assignments of a bank whose generation is raised: from the new generation on its name holds the current incarnation.
pub(super) fn raise_generation() -> String {
    format!(
        "generation = generation + 1, handle = NULL, position = 0, incarnation = {CURRENT}, namespaces = CASE \
         WHEN incarnation = {CURRENT} THEN namespaces ELSE namespaces || (generation + 1) || ':' || {CURRENT} || ' ' END"
    )
}

/// A number that was never given, not even by what the store has forgotten. Small enough for readers of JSON.
pub(super) fn never_given() -> i64 {
    i64::try_from(Uuid::new_v4().as_u128() & ((1 << 52) - 1)).unwrap_or(1).max(1)
}

/// Notes with the commit that a session's batches are stored up to this one. One that is missing keeps the mark where it is.
pub(super) async fn mark_at_last(conn: &mut dyn Conn, mark: CommitMark) -> StoreResult<()> {
    static MARK: Sql = Sql::new(|| {
        "INSERT INTO session_marks (session_id, mark) SELECT $1, $2 WHERE CAST($2 AS bigint) = 1 \
         OR EXISTS (SELECT 1 FROM session_marks AS m WHERE m.session_id = $1) \
         ON CONFLICT (session_id) DO UPDATE SET mark = excluded.mark WHERE session_marks.mark = excluded.mark - 1"
            .to_owned()
    });
    conn.at_last(&MARK, args![mark.session.0, mark.number]).await
}

async fn current(conn: &mut dyn Conn) -> StoreResult<i64> {
    static SELECT: Sql = Sql::new(|| "SELECT incarnation FROM incarnations".to_owned());
    let rows = conn.fetch(&SELECT, args![]).await?;
    rows.first().ok_or_else(|| StoreError::Broken("the store has no incarnation".into()))?.int(0)
}

async fn change(conn: &mut dyn Conn, seen: i64, why: String) -> StoreResult<i64> {
    static CHANGE: Sql = Sql::new(|| {
        "UPDATE incarnations SET incarnation = $2, changed_us = @now, note = $3 WHERE incarnation = $1".to_owned()
    });
    static OPEN: Sql = Sql::new(|| {
        format!(
            "SELECT run_no FROM runs WHERE state IN ('{}', '{}') ORDER BY run_no",
            RunState::Running.name(),
            RunState::Paused.name()
        )
    });
    if conn.execute(&CHANGE, args![seen, never_given(), escape(&why)]).await? > 0 {
        for row in conn.fetch(&OPEN, args![]).await? {
            note_event(conn, RunNo(row.int(0)?), WENT_BACK_EVENT, &why).await?;
        }
    }
    current(conn).await
}

async fn restore_session(conn: &mut dyn Conn, live: LiveSession) -> StoreResult<()> {
    static SESSION: Sql = Sql::new(|| {
        format!(
            "INSERT INTO sessions (session_id, worker, domain, info, counter, opened_us, renewed_us) \
             VALUES ($1, $2, $3, $4, $5, @now, @now) ON CONFLICT (session_id) DO UPDATE SET \
             counter = CASE WHEN sessions.counter < excluded.counter THEN excluded.counter ELSE sessions.counter END WHERE {}",
            session_allowed(SessionEvent::PutBack)
        )
    });
    static MARK: Sql = Sql::new(|| {
        "INSERT INTO session_marks (session_id, mark) VALUES ($1, $2) ON CONFLICT (session_id) DO UPDATE SET mark = excluded.mark"
            .to_owned()
    });
    let LiveSession { session, worker, domain, info_json, counter, mark } = live;
    conn.execute(&SESSION, args![session.0, escape(&worker), escape(&domain), escape(&info_json), counter]).await?;
    conn.execute(&MARK, args![session.0, mark]).await.map(drop)
}

async fn restore_leases(conn: &mut dyn Conn, session: SessionId, held: Vec<ClaimedTask>) -> StoreResult<u64> {
    // what somebody has claimed since is theirs
    static RESTORE: Sql = Sql::new(|| {
        format!(
            "UPDATE tasks AS t SET state = {leased}, session = $2, lease_epoch = b.epoch, reason = NULL \
             FROM @locked(tasks $1: run int, task int, epoch int) AS b WHERE t.run_no = b.run AND t.task_key = b.task \
             AND t.state = @each({ready}, b.task) AND t.lease_epoch < b.epoch \
             AND EXISTS (SELECT 1 FROM sessions AS s WHERE s.session_id = $2 AND s.ended_us IS NULL @share(s))",
            leased = TaskState::Leased.code(),
            ready = TaskState::Ready.code()
        )
    });
    let batch = Batch::default()
        .int(held.iter().map(|task| task.run.0))
        .int(held.iter().map(|task| task.task.0))
        .int(held.iter().map(|task| task.epoch));
    conn.execute(&RESTORE, args![batch, session.0]).await
}

#[async_trait]
impl<B: Backend> Incarnations for SqlStore<B> {
    async fn incarnation(&self) -> StoreResult<Incarnation> {
        static SELECT: Sql = Sql::new(|| "SELECT incarnation, @now - changed_us, note FROM incarnations".to_owned());
        let read = |mut row: Row| {
            let (number, age_ms) = (row.int(0)?, (row.int(1)? / 1000).max(0));
            Ok(Incarnation { number, age_ms, note: unescape(row.text(2)?) })
        };
        let rows = self.fetch(&SELECT, args![]).await?;
        let missing = || StoreError::Broken("the store has no incarnation".into());
        rows.into_iter().next().ok_or_else(missing).and_then(read)
    }

    async fn change_incarnation(&self, seen: i64, why: &str) -> StoreResult<i64> {
        let why = why.to_owned();
        self.backend.write(move |conn| Box::pin(change(conn, seen, why))).await
    }

    async fn restore_session(&self, live: &LiveSession) -> StoreResult<()> {
        let live = live.clone();
        self.backend.write(move |conn| Box::pin(restore_session(conn, live))).await
    }

    async fn restore_leases(&self, session: SessionId, held: &[ClaimedTask]) -> StoreResult<u64> {
        let mut held = held.to_vec();
        held.sort_unstable_by_key(|task| (task.run, task.task));
        self.backend.change(move |conn| Box::pin(restore_leases(conn, session, held))).await
    }

    async fn restore_money(
        &self,
        run: RunNo,
        session: SessionId,
        open: &[Want],
        lost: &[Want],
    ) -> StoreResult<(u64, PicoUsd)> {
        let (mut booked, mut sum) = (0, PicoUsd::ZERO);
        for (wants, state) in [(open, codes::OPEN), (lost, codes::LOST)] {
            for part in wants.chunks(CHUNK) {
                let part = part.to_vec();
                let restored =
                    self.backend.write(move |conn| Box::pin(money::restore(conn, run, session, part, state))).await?;
                booked += restored.0;
                sum = sum.saturating_add(restored.1);
            }
        }
        Ok((booked, sum))
    }
}
