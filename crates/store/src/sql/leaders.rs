//! Leadership as a row (P14): safety never depends on it, so plain compare-and-set is enough.

use async_trait::async_trait;

use super::{Backend, Row, Sql, SqlStore, args, incarnations::CURRENT};
use crate::{
    LeadTold, LeaderRow, Leaders, StoreResult,
    codec::{escape, unescape},
};

#[async_trait]
impl<B: Backend> Leaders for SqlStore<B> {
    async fn leader(&self, scope: &str) -> StoreResult<Option<LeaderRow>> {
        static SELECT: Sql = Sql::new(|| {
            "SELECT holder, epoch, counter, trouble, @now - renewed_us FROM leaders WHERE scope = $1".to_owned()
        });
        let rows = self.fetch(&SELECT, args![escape(scope)]).await?;
        let read = |mut row: Row| {
            let (holder, trouble) = (unescape(row.text(0)?), unescape(row.text(3)?));
            let silent_ms = (row.int(4)? / 1000).max(0);
            Ok(LeaderRow { holder, epoch: row.int(1)?, counter: row.int(2)?, trouble, silent_ms })
        };
        rows.into_iter().next().map(read).transpose()
    }

    async fn take_lead(&self, scope: &str, holder: &str, seen: Option<(i64, i64)>) -> StoreResult<Option<i64>> {
        static FIRST: Sql = Sql::new(|| {
            "INSERT INTO leaders (scope, holder, epoch, counter, renewed_us) VALUES ($1, $2, 1, 0, @now) ON CONFLICT (scope) DO NOTHING RETURNING epoch"
                .to_owned()
        });
        static NEXT: Sql = Sql::new(|| {
            "UPDATE leaders SET holder = $2, epoch = epoch + 1, counter = counter + 1, trouble = '', renewed_us = @now \
             WHERE scope = $1 AND epoch = $3 AND counter = $4 RETURNING epoch"
                .to_owned()
        });
        let (scope, holder) = (escape(scope), escape(holder));
        let rows = match seen {
            None => self.backend.write(move |conn| conn.fetch(&FIRST, args![scope, holder])).await?,
            Some((epoch, counter)) => {
                self.backend.write(move |conn| conn.fetch(&NEXT, args![scope, holder, epoch, counter])).await?
            }
        };
        rows.first().map(|row| row.int(0)).transpose()
    }

    async fn renew_lead(&self, scope: &str, epoch: i64, trouble: &str) -> StoreResult<Option<LeadTold>> {
        static RENEW: Sql = Sql::new(|| {
            format!(
                "UPDATE leaders SET counter = counter + 1, trouble = $3, renewed_us = @now \
                 WHERE scope = $1 AND epoch = $2 AND holder <> '' RETURNING counter, {CURRENT}"
            )
        });
        let args = args![escape(scope), epoch, escape(trouble)];
        let rows = self.backend.change(move |conn| conn.fetch(&RENEW, args)).await?;
        rows.first().map(|row| Ok(LeadTold { counter: row.int(0)?, incarnation: row.int(1)? })).transpose()
    }

    async fn resign_lead(&self, scope: &str, epoch: i64) -> StoreResult<()> {
        static RESIGN: Sql = Sql::new(|| {
            "UPDATE leaders SET holder = '', counter = counter + 1 WHERE scope = $1 AND epoch = $2".to_owned()
        });
        self.execute(&RESIGN, args![escape(scope), epoch]).await.map(drop)
    }
}
