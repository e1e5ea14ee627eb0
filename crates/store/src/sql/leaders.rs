//! Leadership as a row (P14): safety never depends on it, so plain compare-and-set is enough.

use async_trait::async_trait;

use super::{Backend, Row, Sql, SqlStore, args};
use crate::{
    LeaderRow, Leaders, StoreResult,
    codec::{escape, unescape},
};

#[async_trait]
impl<B: Backend> Leaders for SqlStore<B> {
    async fn leader(&self, scope: &str) -> StoreResult<Option<LeaderRow>> {
        static SELECT: Sql = Sql::new(|| "SELECT holder, epoch, counter FROM leaders WHERE scope = $1".to_owned());
        let rows = self.fetch(&SELECT, args![escape(scope)]).await?;
        let read =
            |mut row: Row| Ok(LeaderRow { holder: unescape(row.text(0)?), epoch: row.int(1)?, counter: row.int(2)? });
        rows.into_iter().next().map(read).transpose()
    }

    async fn take_lead(&self, scope: &str, holder: &str, seen: Option<(i64, i64)>) -> StoreResult<Option<i64>> {
        static FIRST: Sql = Sql::new(|| {
            "INSERT INTO leaders (scope, holder, epoch, counter) VALUES ($1, $2, 1, 0) ON CONFLICT (scope) DO NOTHING RETURNING epoch"
                .to_owned()
        });
        static NEXT: Sql = Sql::new(|| {
            "UPDATE leaders SET holder = $2, epoch = epoch + 1, counter = counter + 1 \
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

    async fn renew_lead(&self, scope: &str, epoch: i64) -> StoreResult<bool> {
        static RENEW: Sql = Sql::new(|| {
            "UPDATE leaders SET counter = counter + 1 WHERE scope = $1 AND epoch = $2 AND holder <> ''".to_owned()
        });
        self.execute(&RENEW, args![escape(scope), epoch]).await.map(|renewed| renewed > 0)
    }

    async fn resign_lead(&self, scope: &str, epoch: i64) -> StoreResult<()> {
        static RESIGN: Sql = Sql::new(|| {
            "UPDATE leaders SET holder = '', counter = counter + 1 WHERE scope = $1 AND epoch = $2".to_owned()
        });
        self.execute(&RESIGN, args![escape(scope), epoch]).await.map(drop)
    }
}
