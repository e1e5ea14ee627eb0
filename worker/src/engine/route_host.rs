//! What `bench_models::routes`, which looks after the routes of a worker's runs (P39, P40), wants to know of the worker.

use std::sync::Arc;

use async_trait::async_trait;
use bench_models::routes::{Needs, RouteHost, Routes};
use bench_proto::{
    failure::{Failure, code::MODEL_NOT_FOUND},
    outage::RouteKey,
};
use bench_store::{SessionId, Store, StoreResult};
use tracing::{debug, warn};

use super::Shared;

#[async_trait]
impl RouteHost for Shared {
    fn store(&self) -> &dyn Store {
        self.tools.store.as_ref()
    }

    fn routes(&self) -> &Arc<Routes> {
        &self.runs.routes
    }

    fn domain(&self) -> &str {
        &self.session.domain
    }

    fn name(&self) -> &str {
        &self.session.name
    }

    fn session(&self) -> SessionId {
        self.session.id()
    }

    fn is_served(&self) -> bool {
        self.session.is_served()
    }

    async fn renew_now(&self) -> StoreResult<bool> {
        self.renew_now().await
    }

    async fn meet_running_runs(&self, most: usize) -> StoreResult<()> {
        for run in self.running_runs().await?.into_iter().take(most) {
            if let Err(failure) = self.context(run).await {
                debug!("run {} cannot be served here: {failure}", run.0);
            }
        }
        Ok(())
    }

    async fn needs_at_hand(&self) -> Vec<Needs> {
        self.contexts_at_hand().await.iter().map(|context| context.needs().clone()).collect()
    }

    /// Says it to the other processes too (P23).
    async fn stop_refused(&self, key: &RouteKey, failure: &Failure) {
        for context in self.contexts_at_hand().await {
            if !context.needs().values().flatten().flatten().any(|needed| needed == key) {
                continue;
            }
            context.refuse(failure);
            // the look at the runs at hand pauses it, and says so
            let RouteKey::Model { account, model, .. } = key else { continue };
            let model = (failure.code == MODEL_NOT_FOUND).then_some(model.as_str());
            let stopped = self.tools.store.stop_account(context.run_no(), account, model, &failure.message).await;
            match stopped {
                Ok(paused) if self.session.is_served() && !paused.is_empty() => {
                    let (run, others) = (context.row().run_id.0.as_str(), paused.len() - 1);
                    let (code, message) = (failure.code.as_str(), &failure.message);
                    warn!(
                        run,
                        account, code, "run {run} is paused, and {others} others of account {account}: {message}"
                    );
                }
                Ok(_) => {}
                // the look at the runs at hand pauses it, and says so
                Err(error) => debug!("a run is not paused yet: {error}"),
            }
        }
    }

    fn wake(&self) {
        self.wake();
    }
}
