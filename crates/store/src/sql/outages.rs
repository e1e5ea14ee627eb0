//! Outages of routes (P39): the newest row of a route is locked while it takes an event.

use async_trait::async_trait;
use bench_proto::outage::{Outage, OutageEvent};

use super::{Backend, Conn, Row, Sql, SqlStore, args};
use crate::{
    OutageRow, Outages, StoreResult,
    codec::{escape, unescape},
};

/// An outage that is over is told for so long, in microseconds: who was away hears of it, and calls come back slowly.
const TOLD_US: i64 = 120_000_000;

const COLUMNS: &str =
    "route, opening, from_us, to_us, failed_probes, next_probe_us, prober, prober_us, held, reason, @now";

fn read(mut row: Row) -> StoreResult<OutageRow> {
    let prober = match (row.opt_int(6)?, row.opt_int(7)?) {
        (Some(session), Some(until_us)) => Some((session, until_us)),
        _ => None,
    };
    let outage = Outage {
        opening: row.int(1)?,
        from_us: row.int(2)?,
        to_us: row.opt_int(3)?,
        failed_probes: row.int(4)?,
        next_probe_us: row.int(5)?,
        prober,
    };
    let (held, now_us) = (row.int(8)?, row.int(10)?);
    Ok(OutageRow { route: unescape(row.text(0)?), outage, held, reason: unescape(row.text(9)?), now_us })
}

/// Whether the session that probes has ended: nobody will hear of its probe.
async fn has_ended(conn: &mut dyn Conn, prober: Option<(i64, i64)>) -> StoreResult<bool> {
    static ENDED: Sql =
        Sql::new(|| "SELECT session_id FROM sessions WHERE session_id = $1 AND ended_us IS NOT NULL".to_owned());
    let Some((session, _)) = prober else { return Ok(false) };
    Ok(!conn.fetch(&ENDED, args![session]).await?.is_empty())
}

async fn take(
    conn: &mut dyn Conn,
    domain: String,
    route: String,
    event: OutageEvent,
    reason: String,
) -> StoreResult<(bool, OutageRow)> {
    static NEWEST: Sql = Sql::new(|| {
        format!("SELECT {COLUMNS} FROM outages WHERE domain = $1 AND route = $2 ORDER BY opening DESC LIMIT 1")
    });
    static NOW: Sql = Sql::new(|| "SELECT @now".to_owned());
    static OPEN: Sql = Sql::new(|| {
        "INSERT INTO outages (domain, route, opening, from_us, failed_probes, next_probe_us, reason) \
         VALUES ($1, $2, $3, $4, 0, $5, $6) ON CONFLICT (domain, route, opening) DO NOTHING"
            .to_owned()
    });
    static CHANGE: Sql = Sql::new(|| {
        "UPDATE outages SET to_us = $4, failed_probes = $5, next_probe_us = $6, prober = $7, prober_us = $8, \
         reason = CASE WHEN $9 = '' THEN reason ELSE $9 END WHERE domain = $1 AND route = $2 AND opening = $3"
            .to_owned()
    });
    let newest = conn.fetch_locked(&NEWEST, args![domain.as_str(), route.as_str()]).await?;
    // read after the wait for the lock
    let now_us = conn.fetch(&NOW, args![]).await?.first().map_or(Ok(0), |row| row.int(0))?;
    let mut known = match newest.into_iter().next() {
        Some(row) => OutageRow { now_us, ..read(row)? },
        None => OutageRow { route: unescape(route.clone()), now_us, ..OutageRow::default() },
    };
    if matches!(event, OutageEvent::TakeProbe { .. }) && has_ended(conn, known.outage.prober).await? {
        known.outage.prober = None;
    }
    let before = known.outage.opening;
    if !known.outage.take(now_us, event) {
        return Ok((false, known));
    }
    let Outage { opening, from_us, to_us, failed_probes, next_probe_us, prober } = known.outage.clone();
    let (session, until_us) = prober.unzip();
    let changed = if opening > before {
        known.held = 0;
        conn.execute(&OPEN, args![domain, route, opening, from_us, next_probe_us, reason.as_str()]).await?
    } else {
        let args =
            args![domain, route, opening, to_us, failed_probes, next_probe_us, session, until_us, reason.as_str()];
        conn.execute(&CHANGE, args).await?
    };
    if !reason.is_empty() {
        known.reason = unescape(reason);
    }
    Ok((changed > 0, known))
}

#[async_trait]
impl<B: Backend> Outages for SqlStore<B> {
    async fn outages(&self, domain: &str) -> StoreResult<Vec<OutageRow>> {
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT {COLUMNS} FROM outages AS o WHERE domain = $1 AND (to_us IS NULL OR to_us > @now - {TOLD_US}) \
                 AND opening = (SELECT max(n.opening) FROM outages AS n WHERE n.domain = o.domain AND n.route = o.route) \
                 ORDER BY route"
            )
        });
        self.fetch(&SELECT, args![escape(domain)]).await?.into_iter().map(read).collect()
    }

    async fn outages_since(&self, domain: &str, since_us: i64) -> StoreResult<Vec<OutageRow>> {
        static SELECT: Sql = Sql::new(|| {
            format!(
                "SELECT {COLUMNS} FROM outages WHERE domain = $1 AND (to_us IS NULL OR to_us >= $2) \
                 ORDER BY from_us, route"
            )
        });
        self.fetch(&SELECT, args![escape(domain), since_us]).await?.into_iter().map(read).collect()
    }

    async fn outage(
        &self,
        domain: &str,
        route: &str,
        event: OutageEvent,
        reason: &str,
    ) -> StoreResult<(bool, OutageRow)> {
        let (domain, route, reason) = (escape(domain), escape(route), escape(reason));
        self.backend.write(move |conn| Box::pin(take(conn, domain, route, event, reason))).await
    }

    async fn held_back(&self, domain: &str, route: &str, tasks: i64) -> StoreResult<()> {
        static ADD: Sql = Sql::new(|| {
            "UPDATE outages SET held = held + $3 WHERE domain = $1 AND route = $2 \
             AND opening = (SELECT max(n.opening) FROM outages AS n WHERE n.domain = $1 AND n.route = $2)"
                .to_owned()
        });
        self.execute(&ADD, args![escape(domain), escape(route), tasks]).await.map(drop)
    }
}
