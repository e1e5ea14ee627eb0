//! Send slots (P24): one row per allowance, locked while a process is answered.

use async_trait::async_trait;

use bench_proto::{ids::RunNo, task::TaskState};

use super::{Backend, Conn, Sql, SqlStore, args, batch::Batch};
use crate::{
    Paces, SlotAnswer, SlotAsk, StoreResult,
    codec::{escape, from_json, to_json},
    pace::PaceRow,
};

async fn take(conn: &mut dyn Conn, ask: SlotAsk) -> StoreResult<SlotAnswer> {
    // makes the row when it is not there, and locks it: the clock is read by the next statement, after the wait
    static LOCK: Sql = Sql::new(|| {
        "INSERT INTO paces (endpoint, account, limit_group, kind) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (endpoint, account, limit_group, kind) DO UPDATE SET blocked_us = paces.blocked_us"
            .to_owned()
    });
    static READ: Sql = Sql::new(|| {
        "SELECT p.requests_us, p.tokens_us, p.doc, @now, \
         (SELECT max(o.blocked_us) FROM paces AS o WHERE o.endpoint = $1 AND o.account = $2) \
         FROM paces AS p WHERE p.endpoint = $1 AND p.account = $2 AND p.limit_group = $3 AND p.kind = $4"
            .to_owned()
    });
    static WRITE: Sql = Sql::new(|| {
        "UPDATE paces SET requests_us = $5, tokens_us = $6, blocked_us = $7, doc = $8 \
         WHERE endpoint = $1 AND account = $2 AND limit_group = $3 AND kind = $4"
            .to_owned()
    });
    let of = &ask.allowance;
    let (endpoint, account, group) = (escape(&of.endpoint), escape(&of.account), escape(&of.limit_group));
    let kind = of.kind.code();
    conn.execute(&LOCK, args![endpoint.as_str(), account.as_str(), group.as_str(), kind]).await?;
    let mut rows = conn.fetch(&READ, args![endpoint.as_str(), account.as_str(), group.as_str(), kind]).await?;
    let row = rows.first_mut().ok_or_else(|| crate::StoreError::Missing("the pace of an account".to_owned()))?;
    let mut pace = PaceRow {
        requests_us: row.int(0)?,
        tokens_us: row.int(1)?,
        doc: from_json(&row.text(2)?, || "the pace of an account".to_owned())?,
        blocked_us: row.int(4)?,
    };
    let answer = pace.answer(row.int(3)?, &ask);
    let doc = to_json(&pace.doc)?;
    let args = args![endpoint, account, group, kind, pace.requests_us, pace.tokens_us, pace.blocked_us, doc];
    conn.execute(&WRITE, args).await?;
    Ok(answer)
}

/// Ends holds of accounts, then the delays of a run's tasks: in this order, so that none of them waits again.
async fn release(conn: &mut dyn Conn, run: RunNo, accounts: Vec<String>) -> StoreResult<()> {
    static HOLDS: Sql = Sql::new(|| {
        "UPDATE paces SET blocked_us = 0 WHERE account IN (SELECT b.account FROM @rows($1: account text) AS b)"
            .to_owned()
    });
    fn delayed() -> String {
        format!("t.run_no = $1 AND t.state = {} AND t.not_before > @now", TaskState::Ready.code())
    }
    static LOCK: Sql =
        Sql::new(|| format!("SELECT t.task_key FROM tasks AS t WHERE {} ORDER BY t.task_key", delayed()));
    // due, and still among those that wait
    static TASKS: Sql = Sql::new(|| format!("UPDATE tasks AS t SET not_before = @now WHERE {}", delayed()));
    let accounts = Batch::default().text(accounts.iter().map(|account| escape(account)));
    conn.execute(&HOLDS, args![accounts]).await?;
    conn.lock(&LOCK, args![run.0]).await?;
    conn.execute(&TASKS, args![run.0]).await.map(drop)
}

#[async_trait]
impl<B: Backend> Paces for SqlStore<B> {
    async fn take_slots(&self, ask: &SlotAsk) -> StoreResult<SlotAnswer> {
        let ask = ask.clone();
        self.backend.write(move |conn| Box::pin(take(conn, ask))).await
    }

    async fn release_holds(&self, run: RunNo, accounts: &[String]) -> StoreResult<()> {
        let accounts = accounts.to_vec();
        self.backend.write(move |conn| Box::pin(release(conn, run, accounts))).await
    }
}
