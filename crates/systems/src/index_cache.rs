//! Built indexes of banks: bounded by bytes, each built once however many questions ask for it at the same time (P29).

use std::{
    any::Any,
    collections::HashMap,
    num::NonZero,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use bench_proto::{dataset::BankContent, failure::Failure, ids::Sha256Hash};
use futures::{FutureExt, channel::oneshot, future::Shared};
use tokio::sync::Semaphore;

use crate::{BankRef, Prepared, RecallQuery, documents, kept::Kept};

/// Bytes that are kept when nobody says otherwise: 64 MiB.
pub const DEFAULT_CACHE_BYTES: u64 = 64 << 20;

/// What makes an index: the same key gives the same index.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct IndexKey {
    /// Name of the system.
    pub system: &'static str,
    /// Hash of the bank's content.
    pub content_hash: Sha256Hash,
    /// Entries of the bank that are in the index.
    pub visible_entries: u32,
    /// Settings that go into the index, in a form of the system's own.
    pub settings: Arc<str>,
}

impl IndexKey {
    /// The index of a bank as far as a query may see it.
    pub(crate) fn new(
        system: &'static str,
        bank: &BankRef,
        content: &BankContent,
        query: &RecallQuery<'_>,
        settings: &Arc<str>,
    ) -> Self {
        let visible_entries = documents::visible_len(content, query.visible_entries) as u32;
        Self { system, content_hash: bank.content_hash, visible_entries, settings: Arc::clone(settings) }
    }
}

/// What a system has built of a bank, to be kept in memory.
pub trait BuiltIndex: Any + Send + Sync {
    /// Memory that it holds, roughly.
    fn bytes(&self) -> u64;
}

type AnyIndex = Arc<dyn Any + Send + Sync>;
type Flight = Shared<oneshot::Receiver<Result<AnyIndex, Failure>>>;

/// The cache of a process. Clones share it.
#[derive(Clone)]
pub struct IndexCache {
    inner: Arc<Mutex<Inner>>,
    /// As many builds at once as there are cores: more would only hold more memory.
    turns: Arc<Semaphore>,
}

struct Inner {
    builds: u64,
    kept: Kept<IndexKey, AnyIndex>,
    in_flight: HashMap<IndexKey, Flight>,
}

/// What the cache holds and has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheStats {
    /// Indexes kept.
    pub kept: usize,
    /// What they take, in bytes.
    pub bytes: u64,
    /// Builds started so far.
    pub builds: u64,
}

impl Default for IndexCache {
    fn default() -> Self {
        Self::new(DEFAULT_CACHE_BYTES)
    }
}

impl IndexCache {
    /// A cache that keeps at most `max_bytes`. The index built last is kept in any case, so that a bank larger than the
    /// bound is not built again for each of its questions.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        let inner = Inner { builds: 0, kept: Kept::new(max_bytes), in_flight: HashMap::new() };
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self { inner: Arc::new(Mutex::new(inner)), turns: Arc::new(Semaphore::new(cores)) }
    }

    /// What it holds and has done.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let inner = self.lock();
        let (kept, bytes) = inner.kept.size();
        CacheStats { kept, bytes, builds: inner.builds }
    }

    /// The index under `key`; built by `build` on a blocking thread when it is not there. Whoever asks meanwhile waits
    /// for the same build, which goes on even when the one who started it stops waiting.
    ///
    /// # Errors
    /// The failure of the build, to all who waited; it is not kept, the next one to ask builds again.
    pub async fn get_or_build<T: BuiltIndex>(
        &self,
        key: &IndexKey,
        build: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<Arc<T>, Failure> {
        self.find_or_build(key, build).await.map(|(index, _)| index)
    }

    /// The same, and whether it had to be built for it.
    ///
    /// # Errors
    /// As [`Self::get_or_build`].
    pub async fn find_or_build<T: BuiltIndex>(
        &self,
        key: &IndexKey,
        build: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<(Arc<T>, Prepared), Failure> {
        let (flight, start) = {
            let mut inner = self.lock();
            if let Some(index) = inner.kept.get(key).cloned() {
                return Ok((typed(index)?, Prepared::Ready));
            }
            inner.board(key)
        };
        let prepared = if start.is_some() { Prepared::Built } else { Prepared::Waited };
        if let Some(sender) = start {
            let landing = Landing { cache: self.clone(), key: key.clone() };
            let turn = Arc::clone(&self.turns).acquire_owned();
            tokio::spawn(async move {
                let turn = turn.await; // the semaphore is never closed
                tokio::task::spawn_blocking(move || {
                    let built = build().map(|index| landing.keep(index));
                    drop((landing, turn));
                    let _ = sender.send(built); // nobody may be waiting any more
                });
            });
        }
        let landed = flight.await.unwrap_or_else(|_| {
            Err(Failure::transient("index_build_stopped", "building the bank's index stopped before its end"))
        });
        Ok((typed(landed?)?, prepared))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // no code under the lock leaves it half changed
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The flight that builds `key`, and its other end when it has to be started.
    fn board(&mut self, key: &IndexKey) -> (Flight, Option<oneshot::Sender<Result<AnyIndex, Failure>>>) {
        if let Some(flight) = self.in_flight.get(key) {
            return (flight.clone(), None);
        }
        self.builds += 1;
        let (sender, receiver) = oneshot::channel();
        let flight = receiver.shared();
        self.in_flight.insert(key.clone(), flight.clone());
        (flight, Some(sender))
    }
}

/// Ends a flight however the build ends: by a result, a failure or a panic.
struct Landing {
    cache: IndexCache,
    key: IndexKey,
}

impl Landing {
    fn keep<T: BuiltIndex>(&self, index: T) -> AnyIndex {
        let bytes = index.bytes();
        let index: AnyIndex = Arc::new(index);
        let gone = self.cache.lock().kept.keep(self.key.clone(), index.clone(), bytes);
        drop(gone); // freeing large indexes happens outside the lock
        index
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.cache.lock().in_flight.remove(&self.key);
    }
}

fn typed<T: BuiltIndex>(index: AnyIndex) -> Result<Arc<T>, Failure> {
    index.downcast().map_err(|_| {
        Failure::permanent(
            "index_of_other_system",
            "two systems keep their indexes under one name; report this as a bug",
        )
    })
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicU64, Ordering},
        time::Duration,
    };

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Index(u64);

    impl BuiltIndex for Index {
        fn bytes(&self) -> u64 {
            self.0
        }
    }

    fn key(name: &str) -> IndexKey {
        let content_hash = Sha256Hash::of_bytes(name.as_bytes());
        IndexKey { system: "test", content_hash, visible_entries: 3, settings: "".into() }
    }

    async fn get(cache: &IndexCache, name: &str, bytes: u64) {
        let index = cache.get_or_build(&key(name), move || Ok(Index(bytes))).await.expect("builds");
        assert_eq!(*index, Index(bytes));
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn p29_those_who_ask_together_share_one_build() {
        let cache = IndexCache::default();
        let built = Arc::new(AtomicU64::new(0));
        let ask = |_| {
            let (cache, built) = (cache.clone(), built.clone());
            tokio::spawn(async move {
                let build = move || {
                    built.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(30));
                    Ok(Index(1))
                };
                cache.get_or_build(&key("a"), build).await
            })
        };
        let asked: Vec<_> = (0..32).map(ask).collect();
        for one in asked {
            assert_eq!(*one.await.expect("no panic").expect("builds"), Index(1));
        }
        assert_eq!(built.load(Ordering::SeqCst), 1);
        assert_eq!(cache.stats(), CacheStats { kept: 1, bytes: 1, builds: 1 });
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn p43_one_builds_the_others_wait_and_later_ones_find_it() {
        let cache = IndexCache::default();
        let slow = || {
            std::thread::sleep(Duration::from_millis(50));
            Ok(Index(1))
        };
        let (first_key, second_key) = (key("a"), key("a"));
        let both = tokio::join!(cache.find_or_build(&first_key, slow), cache.find_or_build(&second_key, slow));
        let (first, second) = (both.0.expect("builds").1, both.1.expect("waits").1);
        assert_eq!((first, second), (Prepared::Built, Prepared::Waited));
        let later = cache.find_or_build(&first_key, slow).await.expect("is there").1;
        assert_eq!(later, Prepared::Ready);
    }

    #[tokio::test]
    async fn the_least_recently_used_goes_first_and_the_bound_holds() {
        let cache = IndexCache::new(100);
        get(&cache, "a", 40).await;
        get(&cache, "b", 40).await;
        get(&cache, "a", 40).await; // touched: b is the oldest now
        get(&cache, "c", 40).await;
        assert_eq!(cache.stats(), CacheStats { kept: 2, bytes: 80, builds: 3 });
        get(&cache, "a", 40).await;
        assert_eq!(cache.stats().builds, 3, "a must still be there");
        get(&cache, "b", 40).await;
        assert_eq!(cache.stats(), CacheStats { kept: 2, bytes: 80, builds: 4 });
    }

    #[tokio::test]
    async fn an_index_above_the_bound_is_kept_alone() {
        let cache = IndexCache::new(100);
        get(&cache, "a", 40).await;
        get(&cache, "large", 500).await;
        get(&cache, "large", 500).await;
        assert_eq!(cache.stats(), CacheStats { kept: 1, bytes: 500, builds: 2 });
        get(&cache, "a", 40).await;
        assert_eq!(cache.stats(), CacheStats { kept: 1, bytes: 40, builds: 3 });
    }

    #[tokio::test]
    async fn failures_and_panics_are_not_kept() {
        let cache = IndexCache::default();
        let failure = Failure::transient("disk", "full");
        let failing = failure.clone();
        let result = cache.get_or_build::<Index>(&key("a"), move || Err(failing)).await;
        assert_eq!(result, Err(failure));
        let result = cache.get_or_build::<Index>(&key("a"), || panic!("on purpose")).await;
        assert_eq!(result.map_err(|f| f.code), Err("index_build_stopped".to_owned()));
        get(&cache, "a", 7).await;
        assert_eq!(cache.stats(), CacheStats { kept: 1, bytes: 7, builds: 3 });
    }

    #[tokio::test]
    async fn a_build_goes_on_when_its_first_asker_leaves() {
        let cache = IndexCache::default();
        let slow = || {
            std::thread::sleep(Duration::from_millis(50));
            Ok(Index(1))
        };
        let first_key = key("a");
        let first = cache.get_or_build(&first_key, slow);
        assert!(tokio::time::timeout(Duration::from_millis(5), first).await.is_err(), "must still be building");
        get(&cache, "a", 1).await;
        assert_eq!(cache.stats().builds, 1);
    }

    #[tokio::test]
    async fn keys_differ_by_every_part() {
        let cache = IndexCache::default();
        get(&cache, "a", 1).await;
        let variants = [
            IndexKey { system: "other", ..key("a") },
            IndexKey { visible_entries: 4, ..key("a") },
            IndexKey { settings: "b=1".into(), ..key("a") },
        ];
        for (n, variant) in variants.iter().enumerate() {
            cache.get_or_build(variant, || Ok(Index(1))).await.expect("builds");
            assert_eq!(cache.stats().builds, n as u64 + 2);
        }
    }
}
