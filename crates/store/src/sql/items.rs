//! Dataset items (P16).

use std::collections::HashSet;

use async_trait::async_trait;
use bench_proto::{LOCAL_DOMAIN, PLANS_DOMAIN, ids::Sha256Hash};

use super::{Backend, Batch, Sql, SqlStore, args};
use crate::{
    Item, Items, RunState, StoreError, StoreResult,
    codec::{compress, decompress},
};

/// Compressed bytes of one statement, about.
const STATEMENT_BYTES: usize = 8 << 20;

/// How long a session may be silent and may still write a plan, in microseconds: one that was killed ends at the next look of
/// whoever supervises its run, and a run that is held has nobody.
const SILENT_US: i64 = 300_000_000;

/// Whether a plan may be being written: that of a run that runs, or one whose writer has a session. Plans of runs that are held are
/// written too: those of controls that wait, and of whatever was paused meanwhile.
fn planning() -> String {
    format!(
        "SELECT 1 FROM runs WHERE planned = 0 AND state = '{}' UNION ALL \
         SELECT 1 FROM sessions AS s WHERE s.ended_us IS NULL AND s.renewed_us > @now - {SILENT_US} \
         AND (s.domain LIKE '{PLANS_DOMAIN}/%' \
         OR s.domain IN (SELECT '{LOCAL_DOMAIN}/' || CAST(r.run_no AS text) FROM runs AS r WHERE r.planned = 0)) LIMIT 1",
        RunState::Running.name()
    )
}

#[async_trait]
impl<B: Backend> Items for SqlStore<B> {
    async fn put_items(&self, items: &[Item]) -> StoreResult<()> {
        static STORED: Sql =
            Sql::new(|| "SELECT i.hash FROM @rows($1: hash blob) AS b JOIN items AS i ON i.hash = b.hash".to_owned());
        static INSERT: Sql = Sql::new(|| {
            "INSERT INTO items (hash, body) SELECT b.hash, b.body FROM @rows($1: hash blob, body blob) AS b WHERE true \
             ORDER BY b.hash ON CONFLICT (hash) DO NOTHING"
                .to_owned()
        });
        // most items of a second run are there: they are not compressed again
        let hashes = Batch::default().blob(items.iter().map(|item| item.hash.0.to_vec()));
        let stored = self.fetch(&STORED, args![hashes]).await?;
        let mut known: HashSet<Vec<u8>> = stored.into_iter().map(|mut row| row.blob(0)).collect::<StoreResult<_>>()?;
        let (mut hashes, mut bodies, mut bytes) = (Vec::new(), Vec::new(), 0);
        for item in items {
            if !known.insert(item.hash.0.to_vec()) {
                continue;
            }
            let body = compress(&item.bytes)?;
            bytes += body.len();
            hashes.push(item.hash.0.to_vec());
            bodies.push(body);
            if bytes >= STATEMENT_BYTES {
                let batch = Batch::default().blob(std::mem::take(&mut hashes)).blob(std::mem::take(&mut bodies));
                self.execute(&INSERT, args![batch]).await?;
                bytes = 0;
            }
        }
        if hashes.is_empty() {
            return Ok(());
        }
        self.execute(&INSERT, args![Batch::default().blob(hashes).blob(bodies)]).await.map(drop)
    }

    async fn drop_unreferenced_items(&self) -> StoreResult<Option<u64>> {
        static PLANNING: Sql = Sql::new(planning);
        // asked again by the statement itself: who sees the items of a plan that was begun meanwhile sees its writer too
        static DROP: Sql = Sql::new(|| {
            format!(
                "DELETE FROM items WHERE NOT EXISTS ({}) AND hash NOT IN \
                 (SELECT content FROM banks UNION SELECT questions FROM banks UNION SELECT gold FROM banks)",
                planning()
            )
        });
        self.backend
            .write(|conn| {
                Box::pin(async move {
                    if !conn.fetch(&PLANNING, args![]).await?.is_empty() {
                        return Ok(None);
                    }
                    conn.execute(&DROP, args![]).await.map(Some)
                })
            })
            .await
    }

    async fn item(&self, hash: Sha256Hash) -> StoreResult<Vec<u8>> {
        static SELECT: Sql = Sql::new(|| "SELECT body FROM items WHERE hash = $1".to_owned());
        let what = || format!("item {}", hash.hex());
        let mut rows = self.fetch(&SELECT, args![hash.0.to_vec()]).await?;
        let frame = rows.first_mut().ok_or_else(|| StoreError::Missing(what()))?.blob(0)?;
        let bytes = decompress(&frame, &what())?;
        if Sha256Hash::of_bytes(&bytes) != hash {
            return Err(StoreError::Corrupt(format!("{} does not match its hash", what()).into()));
        }
        Ok(bytes)
    }
}
