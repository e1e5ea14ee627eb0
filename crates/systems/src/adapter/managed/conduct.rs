//! When an instance may start, and what its failures mean.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bench_proto::failure::{Failure, code::SYSTEM_UNAVAILABLE};
use tracing::warn;

use super::{
    super::{super::BankRef, UNREACHABLE},
    Address, LOOK_AGAIN, Managed, cannot, last_words, log_path,
    machine::Turn,
    trials::{Meaning, Starting, Trouble},
};

/// Code of the failure of a system whose instances start and then fail at what they are asked: the run is paused.
pub const BROKEN: &str = "system_broken";
/// How long a task waits in its slot until its instance may be started, and how long it is put off then.
const TURN_WAIT: Duration = Duration::from_secs(10);
const TURN_AGAIN_MS: u64 = 1_000;
/// Operations whose failure loses nothing of a run: they say nothing about whether an instance works.
const ASIDE: [&str; 4] = ["health", "purge", "reset", "statistics"];

impl Managed {
    /// Waits until another instance may be started: a place on this machine is free, and no other one has to be heard of first.
    pub(super) async fn turn(&self) -> Result<(Starting<'_>, Turn), Failure> {
        let places = self.folder.ancestors().nth(2).unwrap_or(&self.folder);
        let begun = Instant::now();
        loop {
            let starting = self.trials.begin(begun.elapsed() < TURN_WAIT / 2)?;
            let turn = Turn::take(places, self.at_once).map_err(|e| cannot(&self.name, &e))?;
            if let (Some(starting), Some(turn)) = (starting, turn) {
                return Ok((starting, turn));
            }
            if begun.elapsed() > TURN_WAIT {
                let message = format!("{}: waits until others of its instances have started", self.name);
                let mut failure = Failure::transient(SYSTEM_UNAVAILABLE, message);
                failure.retry_after_ms = Some(TURN_AGAIN_MS);
                return Err(failure);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Told that an instance has done something well.
    pub(in super::super) fn did(&self, at: &Address, operation: &str) {
        self.trials.did(&at.in_use, operation);
    }

    /// Told that an instance has failed; what the failure means, with the last words of its log.
    pub(in super::super) async fn failed(
        &self,
        at: &Address,
        bank: Option<&BankRef>,
        operation: &str,
        mut failure: Failure,
    ) -> Failure {
        let code = failure.code.clone();
        let ended = matches!(code.as_str(), UNREACHABLE | "system_connection");
        if ended {
            self.doubt(bank.map(|bank| bank.name.as_str()), &at.url).await;
        }
        // a busy system may say so, and is asked again
        if !(ended || code.starts_with("system_http_5") && code != "system_http_503") {
            return failure;
        }
        let folder = self.folder_of(bank.map(|bank| bank.name.as_str()));
        failure.message.push_str(&self.quoted(&folder));
        if ASIDE.iter().any(|aside| operation.starts_with(aside)) {
            return failure;
        }
        let bank = bank.map_or("", |bank| bank.bank_id.as_str());
        let trouble = Trouble { instance: &at.id, bank, operation, code: &code };
        match self.trials.failed(&at.in_use, trouble, Instant::now()) {
            Meaning::Ordinary => failure,
            Meaning::First => {
                let code = code.as_str();
                let said = self.secrets.hide(&failure.to_string());
                warn!(code, "{} was started and fails at the first it is asked ({operation}): {said}", self.name);
                failure
            }
            Meaning::Hopeless => {
                let message = format!(
                    "it starts and fails at what it is asked, twice in the same way, so no other instance is started: {}; \
                     mend it, then resume the run",
                    failure.message
                );
                let hopeless = Failure::terminal(BROKEN, message);
                self.trials.give_up(&hopeless);
                hopeless
            }
        }
    }

    /// What a message adds of an instance's log.
    pub(super) fn quoted(&self, folder: &Path) -> String {
        let log = log_path(folder);
        let said = last_words(&log, &self.secrets);
        if said.is_empty() {
            return format!("; its log, {}, is empty", log.display());
        }
        format!("; its log, {}, ends: {said}", log.display())
    }
}
