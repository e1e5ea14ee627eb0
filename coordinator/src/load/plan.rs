//! What a load is to do, checked before anything is sent.

use std::time::Duration;

use bench_load::{
    facts::{Facts, MOST_BANKS, MOST_MEMORIES},
    mix::Operation,
    pacer::MOST_IN_FLIGHT,
    result::Plan,
};
use bench_models::registry::{Account, FAKE};
use bench_proto::{ids::Sha256Hash, redact};
use bench_systems::{Capabilities, facts, vector};
use jiff::Timestamp;

use crate::{
    app::{App, systems::Driven},
    cli::{LoadArgs, LoadArrivals},
    exit::CliError,
    out::{
        self,
        amounts::{counted, duration},
        times,
    },
};

/// Highest rate: beyond it no machine begins operations one by one.
const MOST_RATE: f64 = 1e6;
/// Longest part of a step.
const LONGEST: f64 = 86_400.0;
/// Most memories that are made up for the banks of one size.
const MOST_FILLED: u64 = 2_000_000;
/// Between two steps of processes that load together, beside the drain.
const SLACK: Duration = Duration::from_secs(2);

/// What a load is to do.
pub(super) struct LoadPlan {
    /// As it is written.
    pub(super) shown: Plan,
    pub(super) arrivals: LoadArrivals,
    pub(super) seed: u64,
    pub(super) facts: Facts,
    /// Retains of a bank one at a time.
    pub(super) ordered: bool,
    /// When the first step begins, where several processes load together.
    start_at: Option<Timestamp>,
}

/// Refuses numbers that make no load, before a system is looked at.
///
/// # Errors
/// Exit 2 naming the flag and what it takes.
pub(super) fn check_flags(args: &LoadArgs) -> Result<(), CliError> {
    let within = |flag: &str, value: f64, low: f64, high: f64| {
        if value.is_finite() && value >= low && value <= high {
            return Ok(());
        }
        Err(CliError::usage(format!("{flag} {value}: give a number from {low} to {high}")))
    };
    for rate in &args.rate {
        within("--rate", *rate, 0.001, MOST_RATE)?;
    }
    within("--seconds", args.seconds, 0.1, LONGEST)?;
    within("--warm-up", args.warm_up, 0.0, LONGEST)?;
    within("--drain", args.drain, 0.0, LONGEST)?;
    within("--banks", args.banks.into(), 1.0, MOST_BANKS.into())?;
    within("--in-flight", args.in_flight.into(), 1.0, MOST_IN_FLIGHT as f64)?;
    within("--top-k", args.top_k.into(), 1.0, 10_000.0)?;
    for size in &args.bank_size {
        within("--bank-size", (*size).into(), 1.0, f64::from(MOST_MEMORIES / 2))?;
        let memories = u64::from(*size) * u64::from(args.banks);
        if memories > MOST_FILLED {
            return Err(CliError::usage(format!(
                "--banks {} of {size} memories are {memories}: at most {MOST_FILLED} are made up at a time",
                args.banks
            )));
        }
    }
    if args.start_at.is_some() && args.bank_size.len() > 1 {
        return Err(CliError::usage(
            "--start-at with several sizes of banks: nobody knows how long filling takes; give one --bank-size",
        ));
    }
    Ok(())
}

/// Refuses systems whose model is on a server that bills or paces it: its caps and limits belong to runs. Which server near by counts as
/// free is said before it is called, for a gateway may lead on to one that is not.
///
/// # Errors
/// Exit 2 with what may be used.
pub(super) fn check_models_are_free(app: &App, given: &str) -> Result<(), CliError> {
    let (name, settings) = app.system(given)?;
    if let Some(model) = facts::chat_model(&name, &settings) {
        let account = app.chat_account(&model)?;
        let made = format!("{name} has its notes taken by {}", model.name);
        check_free(&account, &made, "--set facts.model=fake, or a model")?;
        if model.provider != FAKE {
            out::note(&counts_as_free(&account, &made));
        }
    }
    if let Some(model) = vector::remote_model(&name, &settings) {
        let account = app.embedding_account(&model)?;
        let made = format!("{name} has embeddings made by {}", model.name);
        check_free(&account, &made, "--set vector.model=hash, or an embedder")?;
        out::note(&counts_as_free(&account, &made));
    }
    Ok(())
}

fn check_free(account: &Account, made: &str, instead: &str) -> Result<(), CliError> {
    if account.is_local() && account.limits.rpm.is_none() && account.limits.tpm.is_none() {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "{made}, and a load has neither its caps nor its pace: use {instead} on this machine without limits"
    )))
}

fn counts_as_free(account: &Account, made: &str) -> String {
    let address = redact::url(&account.base_url);
    format!(
        "{made} at {address}, which counts as free because of its address: a load has no cap, so what a gateway there asks of a paid \
         provider is paid in full"
    )
}

impl LoadPlan {
    /// The plan of some flags for a system.
    ///
    /// # Errors
    /// Exit 2 for what the system cannot do, with what it can.
    pub(super) fn new(args: &LoadArgs, driven: &Driven, id: &str) -> Result<Self, CliError> {
        let can = driven.system.capabilities();
        check_capabilities(args, can, &driven.name)?;
        let settings = serde_json::to_vec(&driven.settings).map_err(CliError::usage_of)?;
        let in_flight = can.max_parallel.map_or(args.in_flight, |most| most.min(args.in_flight)).max(1);
        let shown = Plan {
            system: driven.name.clone(),
            system_version: can.version.clone(),
            settings_sha256: Sha256Hash::of_bytes(&settings).hex(),
            arrivals: args.arrivals.name().to_owned(),
            rates: args.rate.clone(),
            mix: args.mix,
            banks: args.banks,
            bank_sizes: args.bank_size.clone(),
            top_k: args.top_k,
            seconds: args.seconds,
            warm_up_seconds: args.warm_up,
            drain_seconds: args.drain,
            in_flight,
        };
        let seed = args.seed.unwrap_or_else(|| u64::from_str_radix(id, 16).unwrap_or_default());
        let start_at = args.start_at.as_deref().map(start_time).transpose()?;
        Ok(Self { shown, arrivals: args.arrivals, seed, facts: Facts::new(seed), ordered: can.ordered, start_at })
    }

    /// When step number `at` (from 0) begins, where that is agreed upon. A step has its whole drain, whether it needs it or not, so
    /// that processes stay together.
    pub(super) fn begins(&self, at: usize) -> Option<Timestamp> {
        let plan = &self.shown;
        let step = Duration::from_secs_f64(plan.warm_up_seconds + plan.seconds + plan.drain_seconds) + SLACK;
        self.start_at?.checked_add(step * u32::try_from(at).unwrap_or(u32::MAX)).ok()
    }

    /// What is about to be done, on two lines.
    pub(super) fn announcement(&self, id: &str, driven: &Driven) -> String {
        let plan = &self.shown;
        let seconds = plan.warm_up_seconds + plan.seconds;
        let sizes = plan.bank_sizes.len() as f64;
        let operations = plan.rates.iter().sum::<f64>() * seconds * sizes;
        let filled: u64 = plan.bank_sizes.iter().map(|size| u64::from(*size) * u64::from(plan.banks)).sum();
        let place = driven.system.place();
        let at = if place.is_empty() { String::new() } else { format!(" at {place}") };
        let more = if self.arrivals == LoadArrivals::Steps { ", and more until it is behind" } else { "" };
        format!(
            "load {id}: {} {}{at}, {}, {}\n{} to fill the banks, then about {operations:.0} operations in {}{more}",
            plan.system,
            plan.system_version,
            plan.mix,
            counted(u64::from(plan.banks), "bank"),
            counted(filled, "memory"),
            duration(plan.rates.len() as f64 * sizes * seconds),
        )
    }
}

fn check_capabilities(args: &LoadArgs, can: &Capabilities, name: &str) -> Result<(), CliError> {
    let usage = |what: String| Err(CliError::usage(what));
    let recalls = args.mix.share_of(Operation::Recall) > 0;
    if can.sees_gold {
        return usage(format!("{name} is a control that is told the answers: there is nothing to load"));
    }
    if recalls && !can.recalls {
        return usage(format!("{name} does not search: use --mix retain=1"));
    }
    if !can.banks && args.banks > 1 {
        return usage(format!("{name} has one memory for everything: use --banks 1"));
    }
    match can.max_k.filter(|most| recalls && args.top_k > *most) {
        Some(most) => usage(format!("--top-k {}: {name} gives at most {most} hits", args.top_k)),
        None => Ok(()),
    }
}

/// The moment at which processes begin together.
fn start_time(text: &str) -> Result<Timestamp, CliError> {
    let wrong = |why: &str| CliError::usage(format!("--start-at {text}: {why}"));
    let ms = times::since(text).map_err(|_| wrong("give a time, 2026-11-20T14:00 or with a zone"))?;
    let moment = Timestamp::from_millisecond(ms).map_err(|_| wrong("there is no such time"))?;
    if moment <= Timestamp::now() {
        return Err(wrong("that has passed"));
    }
    Ok(moment)
}
