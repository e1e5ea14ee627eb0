//! Flags as settings: so that `config show` and error messages can name them.

use std::path::PathBuf;

use bench_settings::FlagValue;

use crate::cli::{Cli, GlobalArgs, MeterArgs, SampleArgs, SubmitArgs, SystemsVerb, Verb};

/// The flags that were given.
pub(super) fn given(cli: &Cli) -> Vec<FlagValue> {
    let mut flags = Flags::default();
    global_flags(&cli.global, &mut flags);
    match &cli.verb {
        Verb::Submit(args) | Verb::Estimate(args) => submit_flags(args, &mut flags),
        Verb::Systems(SystemsVerb::Hash { mode, dispositions, .. }) => {
            flags.one("system.mode", "--mode", mode.as_ref());
            flags.one("system.dispositions", "--dispositions", dispositions.as_ref());
        }
        Verb::JudgeAudit(args) => {
            sample_flags(&args.sample, &mut flags);
            submit_flags(&args.as_ref().clone().into_submit(), &mut flags);
        }
        Verb::Import(args) => sample_flags(&args.sample, &mut flags),
        _ => {}
    }
    flags.0
}

/// Where the dataset of a run that exists lies now, and whether it may be another than the published one. No setting: it holds
/// for the run that a verb goes on with, and for its controls.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatasetLies {
    /// `--dataset-path`.
    pub(crate) path: Option<PathBuf>,
    /// `--allow-modified-dataset`.
    pub(crate) allow_modified: bool,
}

/// What the flags of a verb say of it.
pub(super) fn dataset_lies(cli: &Cli) -> DatasetLies {
    let (path, allow_modified) = match &cli.verb {
        Verb::Resume(args) => (&args.dataset_path, args.allow_modified_dataset),
        Verb::Submit(args) => (&args.sample.dataset_path, args.sample.allow_modified_dataset),
        _ => return DatasetLies::default(),
    };
    DatasetLies { path: path.clone(), allow_modified }
}

#[derive(Default)]
struct Flags(Vec<FlagValue>);

impl Flags {
    fn one<T: ToString>(&mut self, key: &str, flag: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.0.push(FlagValue::new(key, flag, value.to_string()));
        }
    }

    fn many(&mut self, key: &str, flag: &str, values: &[String]) {
        if !values.is_empty() {
            self.0.push(FlagValue { key: key.to_owned(), flag: flag.to_owned(), values: values.to_vec() });
        }
    }
}

fn global_flags(args: &GlobalArgs, flags: &mut Flags) {
    flags.one("store.url", "--store", args.store.as_ref());
    flags.one("queue.url", "--queue", args.queue.as_ref());
}

fn sample_flags(args: &SampleArgs, flags: &mut Flags) {
    flags.one("run.dataset", "--dataset", args.dataset.as_ref());
    flags.one("run.preset", "--preset", args.preset.as_ref());
    flags.one("run.sampler", "--sampler", args.sampler.as_ref());
    flags.one("run.seed", "--seed", args.seed.as_ref());
    flags.one("run.limit", "--limit", args.limit.as_ref());
    flags.one("run.sample", "--sample", args.sample.as_ref());
    flags.one("run.sample_total", "--sample-total", args.sample_total.as_ref());
    flags.one("run.per_bank", "--per-bank", args.per_bank.as_ref());
    flags.one("run.max_banks", "--max-banks", args.max_banks.as_ref());
    flags.one("run.max_sessions", "--max-sessions", args.max_sessions.as_ref());
    flags.many("run.category", "--category", &args.category);
    flags.many("run.exclude_category", "--exclude-category", &args.exclude_category);
    flags.many("run.facet", "--facet", &args.facet);
    flags.many("run.exclude_facet", "--exclude-facet", &args.exclude_facet);
}

fn meter_flags(args: &MeterArgs, flags: &mut Flags) {
    flags.one("meter.on", "--meter", args.meter.then_some(&true));
    flags.many("meter.allow", "--meter-allow", &args.meter_allow);
    flags.many("meter.accounts", "--meter-account", &args.meter_account);
    flags.many("meter.variables", "--meter-variable", &args.meter_variable);
    flags.one("meter.fault", "--meter-fault", args.meter_fault.as_ref());
}

fn submit_flags(args: &SubmitArgs, flags: &mut Flags) {
    sample_flags(&args.sample, flags);
    flags.one("run.system", "--system", args.system.as_ref());
    flags.one("system.mode", "--mode", args.mode.as_ref());
    flags.one("system.dispositions", "--dispositions", args.dispositions.as_ref());
    flags.one("run.scenario", "--scenario", args.scenario.as_ref());
    flags.one("run.max_recalls", "--max-recalls", args.max_recalls.as_ref());
    flags.one("run.multi_query", "--multi-query", args.multi_query.as_ref());
    flags.one("run.answerer", "--answerer", args.answerer.as_ref());
    flags.many("run.judge", "--judge", &args.judge);
    flags.many("run.scorer", "--scorer", &args.scorer);
    flags.one("run.headline", "--headline", args.headline.as_ref());
    flags.one("run.top_k", "--top-k", args.top_k.as_ref());
    flags.one("run.votes", "--votes", args.votes.as_ref());
    flags.one("run.rubric", "--rubric", args.rubric.as_ref());
    flags.one("run.controls", "--controls", args.controls.then_some(&true));
    flags.one("run.canaries", "--no-canaries", args.no_canaries.then_some(&false));
    meter_flags(&args.meter, flags);
    flags.one("run.concurrency", "--concurrency", args.limits.concurrency.as_ref());
    flags.one("run.max_rpm", "--max-rpm", args.limits.max_rpm.as_ref());
    flags.one("run.max_tpm", "--max-tpm", args.limits.max_tpm.as_ref());
    flags.one("run.max_cost", "--max-cost", args.limits.max_cost.as_ref());
    flags.one("run.max_cost_per_day", "--max-cost-per-day", args.limits.max_cost_per_day.as_ref());
    flags.one("run.retries", "--retries", args.limits.retries.as_ref());
    flags.one("run.outage_timeout", "--outage-timeout", args.limits.outage_timeout.as_ref());
    let recalls = args.latency_probe.as_deref().map(|n| if n == "off" { "0" } else { n });
    flags.one("run.latency_probe", "--latency-probe", recalls.as_ref());
    flags.many("run.latency_probe_rate", "--latency-probe-rate", &args.latency_probe_rate);
    flags.one("run.unpriced_ok", "--unpriced-ok", args.prices.unpriced_ok.then_some(&true));
    flags.one("run.cache", "--cache", args.cache.as_ref());
    flags.one("run.pool", "--pool", args.pool.as_ref());
    flags.one("trace.url", "--trace-url", args.trace_url.as_ref());
    flags.one("trace.content", "--trace-content", args.trace_content.then_some(&true));
}
