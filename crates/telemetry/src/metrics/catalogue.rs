//! Every metric of bench-coord. Units are in names; labels are few and bounded (runs that are open, pools, roles, accounts).

use super::{Counter, Gauge, Histogram, Metric, MetricKind};

/// Seconds of steps and calls.
const SECONDS: &[f64] = &[0.005, 0.02, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 120.0, 300.0];
/// Seconds of transactions.
const SHORT_SECONDS: &[f64] = &[0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0];
/// Seconds of an operation of a model, as OpenTelemetry's conventions want them.
const MODEL_SECONDS: &[f64] = &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Tokens, likewise.
const TOKEN_COUNTS: &[f64] = &[
    1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0, 16777216.0,
    67108864.0,
];
/// Rows of a batch.
const ROWS: &[f64] = &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0];

const fn metric(
    name: &'static str,
    labels: &'static [&'static str],
    kind: MetricKind,
    buckets: &'static [f64],
    unit: &'static str,
    help: &'static str,
) -> Metric {
    Metric { name, help, labels, kind, buckets, unit }
}

macro_rules! catalogue {
    ($($kind:ident $ident:ident = $name:literal [$($label:literal),*] $(in $buckets:ident)? $(of $unit:literal)? : $help:literal;)+) => {
        $(
            #[doc = $help]
            pub static $ident: $kind = $kind(metric(
                $name, &[$($label),*], MetricKind::$kind, catalogue!(@buckets $($buckets)?), concat!("" $(, $unit)?), $help,
            ));
        )+

        /// All metrics.
        #[must_use]
        pub fn all() -> Vec<&'static Metric> {
            vec![$(&$ident.0),+]
        }
    };
    (@buckets) => { &[] };
    (@buckets $buckets:ident) => { $buckets };
}

catalogue! {
    Counter QUESTIONS = "bench_questions_total" ["outcome"]: "questions that ended, by outcome";
    Counter STEPS = "bench_steps_total" ["step", "outcome"]: "steps that were stored: retain, ready, recall, answer, score, judge, calls of votes of several (`judge_call`), parts of a probe; ok or failed";
    Histogram STEP_SECONDS = "bench_step_seconds" ["step"] in SECONDS: "seconds of a step, waits included, queue and building excluded; `build` is building";
    Histogram PROVIDER_SECONDS = "bench_provider_seconds" ["step"] in SECONDS: "seconds of a step inside calls to the memory system or model";
    Histogram WAIT_SECONDS = "bench_wait_seconds" ["wait"] in SECONDS: "seconds of single waits: queue_wait, rate_wait, budget_wait, retry_wait";
    Counter RATE_WAIT_SECONDS = "bench_rate_wait_seconds_total" ["step"]: "seconds that steps waited for allowances, money and repeats";
    Counter CALLS = "bench_model_calls_total" ["account", "model", "outcome"]: "HTTP attempts at models: ok, rate_limited, error, transport";
    Histogram CALL_SECONDS = "bench_model_call_seconds" ["account", "model"] in SECONDS: "seconds of an HTTP attempt at a model";
    Counter RATE_LIMITED = "bench_rate_limited_total" ["account"]: "attempts that were answered with 429";
    Counter RETRIES = "bench_retries_total" ["phase"]: "attempts beside the used ones, 429s included";
    Counter CACHED_CALLS = "bench_cached_calls_total" ["phase"]: "calls that were served from the call store, for free";
    Counter TOKENS = "bench_tokens_total" ["phase", "direction"]: "tokens by the provider's count: prompt, completion";
    Counter COST_USD = "bench_cost_usd_total" ["phase"]: "dollars of calls, by phase";
    Histogram CLIENT_TOKENS = "gen_ai.client.token.usage" ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model", "server.address", "server.port", "gen_ai.token.type"] in TOKEN_COUNTS of "{token}": "tokens of a call that was answered: input, output";
    Histogram CLIENT_SECONDS = "gen_ai.client.operation.duration" ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.response.model", "server.address", "server.port", "error.type"] in MODEL_SECONDS of "s": "seconds of a call, each attempt by itself";
    Gauge RATE_LIMIT = "bench_rate_limit_per_minute" ["account", "unit"]: "configured allowance of an account: requests, tokens";
    Counter RATE_USED = "bench_rate_used_total" ["account", "unit"]: "what calls took of an account's allowance: requests, and tokens where they are limited";
    Histogram CHECKPOINT_ROWS = "bench_checkpoint_rows" [] in ROWS: "rows of a checkpoint transaction";
    Histogram CHECKPOINT_SECONDS = "bench_checkpoint_seconds" [] in SHORT_SECONDS: "seconds of a checkpoint transaction";
    Counter TASK_RETRIES = "bench_task_retries_total" ["role"]: "tasks that failed and were handed back for another attempt";
    Counter TASKS_PARKED = "bench_tasks_parked_total" ["role"]: "tasks that were handed back to wait";
    Gauge SLOTS = "bench_slots" ["role"]: "slots of this worker";
    Gauge SLOTS_BUSY = "bench_slots_busy" ["role"]: "slots in use of this worker";
    Gauge LEADING = "bench_coordinator_leading" []: "1 while this coordinator leads and the store has confirmed it in the last 6 s";
    Gauge TASKS = "bench_tasks" ["pool", "role", "state"]: "open tasks: unpublished (up to 100,000 of a run are counted), queued, delayed, leased";
    Gauge OLDEST_TASK_SECONDS = "bench_oldest_task_seconds" ["pool", "role"]: "age of the oldest task that is due and not claimed";
    Gauge QUEUE_DEPTH = "bench_queue_depth" ["pool", "role"]: "messages ready in the broker's queue";
    Gauge QUEUE_CONSUMERS = "bench_queue_consumers" ["pool", "role"]: "consumers of the broker's queue";
    Gauge WINDOW = "bench_window" ["pool", "role"]: "tasks that may be handed out at once";
    Gauge WORKERS = "bench_workers" ["pool", "state"]: "workers with an open session: alive, silent";
    Gauge DESIRED_WORKERS = "bench_desired_workers" ["pool", "role"]: "workers that scaling asks for";
    Gauge PROVIDER_AWAY_SECONDS = "bench_provider_away_seconds" ["account", "model"]: "for how long nobody has got through to a model that runs need";
    Gauge WORKERS_WITHDRAWN = "bench_workers_withdrawn" ["account", "model"]: "workers that do not get through to a model that others reach, and leave its calls to them";
    Gauge SYSTEM_AWAY_SECONDS = "bench_system_away_seconds" ["system", "operation"]: "for how long nobody has got through to a memory system that runs need";
    Gauge SYSTEM_WITHDRAWN = "bench_system_workers_withdrawn" ["system", "operation"]: "workers that do not get through to a memory system that others reach, and leave its tasks to them";
    Gauge DEAD_LETTERS = "bench_dead_letters" []: "messages in the dead letters";
    Counter LEASES_LOST = "bench_leases_lost_total" []: "tasks taken from workers that fell silent";
    Gauge RUN_QUESTIONS = "bench_run_questions" ["run", "state"]: "questions of an open run: sample, scored, abstained, infra_error, open";
    Gauge RUN_PROGRESS = "bench_run_progress_ratio" ["run"]: "share of a run's questions that have ended";
    Gauge RUN_ETA_SECONDS = "bench_run_eta_seconds" ["run"]: "seconds until a run ends at its pace of the last minutes";
    Gauge RUN_STILL_SECONDS = "bench_run_still_seconds" ["run"]: "seconds since anything of a running run moved; none of one that waits at its end for its controls or for others of its group";
    Gauge RUN_COST_USD = "bench_run_cost_usd" ["run", "kind"]: "dollars of an open run: spent, reserved, uncertain, cap, and under_cap, what is spent under the cap (both of its group, where it is one of several)";
    Gauge RUN_INFO = "bench_run_info" ["run", "dataset", "system", "answerer", "status"]: "1 for every open run";
    Counter TRACES = "bench_traces_total" ["reason"]: "questions whose traces were kept: failed, slow, retried, sampled";
    Counter TRACES_DELAYED = "bench_traces_delayed_total" []: "kept questions whose traces could not be sent at once: they are sent later";
    Counter SPANS = "bench_spans_total" ["outcome"]: "spans on their way to the collector: sent, dropped";
}

/// Labels that are in use, each once.
#[must_use]
pub fn labels() -> Vec<&'static str> {
    let mut labels: Vec<&str> = all().iter().flat_map(|metric| metric.labels).copied().collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_well_formed_and_unique() {
        let names: BTreeSet<&str> = all().iter().map(|metric| metric.name).collect();
        assert_eq!(names.len(), all().len());
        for metric in all() {
            // names of the conventions have dots
            let is_ours = metric.name.starts_with("bench_");
            let good = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || (c == '.' && !is_ours));
            assert!((is_ours || metric.name.starts_with("gen_ai.")) && good(metric.name), "{}", metric.name);
            assert!(metric.labels.iter().all(|label| good(label)), "{}", metric.name);
            assert_eq!(metric.name.ends_with("_total"), metric.kind == MetricKind::Counter, "{}", metric.name);
            assert_eq!(metric.buckets.is_empty(), metric.kind != MetricKind::Histogram, "{}", metric.name);
            assert!(metric.buckets.is_sorted(), "{}", metric.name);
            let word = metric.help.split(' ').next().unwrap_or_default();
            let plain = !word.starts_with(|c: char| c.is_ascii_uppercase()) || word == word.to_ascii_uppercase();
            assert!(plain && !metric.help.ends_with('.'), "{}", metric.help);
        }
    }

    #[test]
    fn every_metric_is_documented() {
        let document = include_str!("../../../../docs/TELEMETRY.md");
        for metric in all() {
            let labels = metric.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>().join(", ");
            let kind = format!("{:?}", metric.kind).to_lowercase();
            let row = format!("| `{}` | {kind} | {labels} | {} |", metric.name, metric.help);
            assert!(document.contains(&row), "docs/TELEMETRY.md lacks the row\n{row}");
        }
        let rows =
            document.lines().filter(|line| line.starts_with("| `bench_") || line.starts_with("| `gen_ai.")).count();
        assert_eq!(rows, all().len(), "docs/TELEMETRY.md has rows of metrics that are not there");
    }
}
