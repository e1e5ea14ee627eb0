//! Pools whose queues the broker refuses: a name that it does not take, queues with other arguments, a user without the right.
//! What is wrong with one pool holds up no other.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use tracing::{info, warn};

/// How long a pool is left alone when it is refused for the first time: its queues may only have been deleted.
const FIRST: Duration = Duration::from_millis(500);
/// Longest time between two attempts.
const LONGEST: Duration = Duration::from_secs(30);

/// Pools that are refused, or were and have not been published into since.
#[derive(Debug, Default)]
pub(super) struct RefusedPools(BTreeMap<String, Refused>);

#[derive(Debug)]
struct Refused {
    /// What the broker said; nothing once the queues are there again.
    why: Option<String>,
    /// Refusals in a row.
    times: u32,
    until: Instant,
}

impl RefusedPools {
    /// Leaves a pool alone for a while, twice as long each time, and says so once.
    pub(super) fn add(&mut self, pool: &str, why: String, now: Instant) {
        if self.is_left_alone(pool, now) {
            return;
        }
        let times = self.0.get(pool).map_or(0, |refused| refused.times);
        if times == 0 {
            warn!(
                pool,
                code = "pool_refused",
                "nothing of pool '{pool:.60}' can be handed out: {why}; the others go on"
            );
        }
        let pause = (FIRST * 2_u32.saturating_pow(times)).min(LONGEST);
        let refused = Refused { why: Some(why), times: times.saturating_add(1), until: now + pause };
        self.0.insert(pool.to_owned(), refused);
    }

    /// Whether it is too early to try a pool again.
    pub(super) fn is_left_alone(&self, pool: &str, now: Instant) -> bool {
        self.0.get(pool).is_some_and(|refused| now < refused.until)
    }

    /// Notes that the queues of a pool are there; true when they were refused before.
    pub(super) fn declared(&mut self, pool: &str) -> bool {
        let Some(refused) = self.0.get_mut(pool) else { return false };
        refused.why = None;
        true
    }

    /// Notes that messages were published into a pool.
    pub(super) fn published(&mut self, pool: &str) {
        if self.0.remove(pool).is_some() {
            info!(pool, "tasks of pool '{pool}' are handed out again");
        }
    }

    /// Forgets pools that no run is in any more.
    pub(super) fn keep(&mut self, is_used: impl Fn(&str) -> bool) {
        self.0.retain(|pool, _| is_used(pool));
    }

    /// What is wrong, in one line.
    pub(super) fn text(&self) -> String {
        let refused = self.0.iter().filter_map(|(pool, refused)| Some((pool, refused.why.as_ref()?)));
        refused.map(|(pool, why)| format!("pool '{pool:.60}' is left out: {why}")).collect::<Vec<_>>().join("; ")
    }
}

#[cfg(all(test, feature = "cluster"))]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };

    use async_trait::async_trait;
    use bench_proto::{
        ids::{Role, RunNo},
        task::QueueName,
    };
    use bench_queue::{Consumer, Outgoing, Queue, QueueDepth, QueueError, memory::MemoryQueue};
    use bench_store::{NewRun, RunState, Store, conformance};

    use super::*;
    use crate::dispatch::{
        DispatchError, Dispatcher, OUTAGE_TIMEOUT, Scope, WakeUps, past::Past, survey::Learned, trouble::Trouble,
    };

    #[test]
    fn p12_a_refused_pool_is_tried_again_ever_more_seldom() {
        let (mut refused, start) = (RefusedPools::default(), Instant::now());
        let (mut tries, mut now) = (Vec::new(), start);
        while now < start + Duration::from_secs(100) {
            if !refused.is_left_alone("p", now) {
                tries.push(now.duration_since(start).as_millis());
                refused.add("p", "no right".to_owned(), now);
            }
            now += Duration::from_millis(250);
        }
        assert_eq!(tries, [0, 500, 1500, 3500, 7500, 15_500, 31_500, 61_500, 91_500]);
        assert_eq!(refused.text(), "pool 'p' is left out: no right");
        assert!(refused.declared("p") && !refused.declared("other") && refused.text().is_empty());
        refused.published("p");
        assert!(!refused.is_left_alone("p", now) && !refused.declared("p"));
    }

    /// A broker that declares no long name, lets nobody write into pool `closed`, and at times takes no login.
    #[derive(Debug, Default)]
    struct Picky(MemoryQueue, AtomicBool);

    impl Picky {
        fn check_login(&self) -> Result<(), QueueError> {
            match self.1.load(Ordering::Relaxed) {
                true => Err(QueueError::Refused("the login is refused".into())),
                false => Ok(()),
            }
        }
    }

    #[async_trait]
    impl Queue for Picky {
        async fn declare(&self, queues: &[QueueName]) -> Result<(), QueueError> {
            self.check_login()?;
            match queues.iter().any(|queue| queue.wire_name().len() > 255) {
                true => Err(QueueError::Setup("the name is too long".into())),
                false => self.0.declare(queues).await,
            }
        }

        async fn publish(&self, queue: &QueueName, messages: &[Outgoing]) -> Result<(), QueueError> {
            self.check_login()?;
            match queue.pool.as_str() {
                "closed" => Err(QueueError::Setup("the user may not use it".into())),
                _ => self.0.publish(queue, messages).await,
            }
        }

        async fn consume(&self, queue: &QueueName, prefetch: u16) -> Result<Box<dyn Consumer>, QueueError> {
            self.0.consume(queue, prefetch).await
        }

        async fn depth(&self, queue: &QueueName) -> Result<QueueDepth, QueueError> {
            self.check_login()?;
            self.0.depth(queue).await
        }

        async fn purge(&self, queue: &QueueName) -> Result<(), QueueError> {
            self.0.purge(queue).await
        }

        fn describe(&self) -> String {
            self.0.describe()
        }

        async fn close(&self) {
            self.0.close().await;
        }
    }

    /// A planned run of a domain with one bank to retain.
    async fn planned(store: &dyn Store, domain: &str, pool: &str) -> RunNo {
        let mut new = NewRun { domain: domain.to_owned(), ..conformance::new_run(&format!("r-{pool:.8}")) };
        new.spec.limits.pool = pool.to_owned();
        let run = store.create_run(&new).await.expect("is created");
        store.add_banks(run, &[conformance::bank(0, &[(2, &[0])])]).await.expect("is added");
        store.finish_plan(run).await.expect("is planned");
        run
    }

    fn dispatcher(store: &Arc<dyn Store>, queue: Arc<dyn Queue>) -> Dispatcher {
        Dispatcher {
            store: Arc::clone(store),
            queue,
            scope: Scope::Domain("test".to_owned()),
            wake_ups: WakeUps::default(),
            trouble: Trouble::default(),
            past: Past::default(),
            traced: false,
            outage_timeout: OUTAGE_TIMEOUT,
        }
    }

    #[tokio::test]
    async fn p12_who_is_refused_by_the_whole_broker_leaves_no_pool_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        planned(store.as_ref(), "test", "default").await;
        let queue = Arc::new(Picky::default());
        let dispatcher = dispatcher(&store, Arc::<Picky>::clone(&queue));
        let is_refused = async |learned: &mut Learned| match dispatcher.look(learned).await {
            Err(DispatchError::Queue(QueueError::Refused(_))) => learned.refused.text().is_empty(),
            _ => false,
        };
        let mut learned = Learned::default();
        queue.1.store(true, Ordering::Relaxed);
        assert!(is_refused(&mut learned).await, "its queues cannot be declared");
        queue.1.store(false, Ordering::Relaxed);
        assert_eq!(dispatcher.look(&mut learned).await.expect("is handed out").published, 1);
        queue.1.store(true, Ordering::Relaxed);
        // all is published again
        learned.runs.clear();
        assert!(is_refused(&mut learned).await, "nothing can be published");
        planned(store.as_ref(), "test", "second").await;
        assert!(is_refused(&mut learned).await, "nor declared");
    }

    #[tokio::test]
    async fn p12_a_pool_whose_queues_are_refused_holds_up_no_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = conformance::store_in(folder.path()).await;
        let long = planned(store.as_ref(), "test", &"p".repeat(300)).await;
        let closed = planned(store.as_ref(), "test", "closed").await;
        planned(store.as_ref(), "test", "default").await;
        let dispatcher = dispatcher(&store, Arc::new(Picky::default()));
        let mut learned = Learned::default();
        let looked = dispatcher.look(&mut learned).await.expect("the others go on");
        assert_eq!(looked.published, 1);
        let depth = dispatcher.queue.depth(&QueueName::new("default", Role::Retain)).await.expect("is declared");
        assert_eq!(depth.ready, 1);
        let told = dispatcher.trouble.get();
        assert!(told.contains("too long") && told.contains("pool 'closed' is left out: the user may not"), "{told}");
        for run in [long, closed] {
            let set = store.set_run_state(run, &[RunState::Running], RunState::Cancelled, None).await;
            assert!(set.expect("is cancelled"));
        }
        dispatcher.look(&mut learned).await.expect("looks");
        assert_eq!(dispatcher.trouble.get(), "");
    }
}
