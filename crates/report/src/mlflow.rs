//! A result as MLflow keeps it: params are settings, metrics are figures, tags say which result it is. No question, gold or answer is
//! among them. Who sends it is elsewhere.

use bench_proto::summary::{Interval, MetricScore, Summary, Verdict};
use serde_json::Value;

use crate::settings::settings_of;

/// Tag by which a run of a tracking server is found again.
pub const RUN_TAG: &str = "bench.run";
/// Tag with the result digest.
pub const DIGEST_TAG: &str = "bench.result_digest";
/// Longest value of a param or a tag, in characters: servers before version 2.8 refuse more.
const MOST_VALUE: usize = 500;
/// Longest name of a metric or a param, in characters.
const MOST_NAME: usize = 250;

/// What is logged of a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Name of the run as people see it.
    pub run_name: String,
    /// RFC 3339: when it began.
    pub started_at: Option<String>,
    /// RFC 3339: when it ended.
    pub finished_at: Option<String>,
    /// Whether it may be used.
    pub verdict: Verdict,
    /// Name → value, each name once.
    pub tags: Vec<(String, String)>,
    /// Name → value, each name once.
    pub params: Vec<(String, String)>,
    /// Name → figure, each name once; what was not computed is left out.
    pub metrics: Vec<(String, f64)>,
}

/// The record of a result.
#[must_use]
pub fn record(summary: &Summary) -> Record {
    let run = &summary.run;
    Record {
        run_name: shortened(run.name.as_deref().unwrap_or(&run.id)),
        started_at: run.started_at.clone(),
        finished_at: run.finished_at.clone(),
        verdict: run.verdict,
        tags: tags(summary),
        params: params(summary),
        metrics: metrics(summary),
    }
}

fn tags(summary: &Summary) -> Vec<(String, String)> {
    let run = &summary.run;
    let mut tags = Pairs::default();
    tags.put(RUN_TAG, &run.id);
    tags.put(DIGEST_TAG, &summary.result_digest);
    tags.put("bench.fingerprint", &run.fingerprint);
    tags.put("bench.verdict", run.verdict.name());
    tags.put("bench.code_version", &run.code_version);
    if !run.reasons.is_empty() {
        tags.put("bench.reasons", &run.reasons.join("; "));
    }
    if !summary.labels.is_empty() {
        tags.put("bench.labels", &summary.labels.join(", "));
    }
    tags.0
}

fn params(summary: &Summary) -> Vec<(String, String)> {
    let (dataset, spec) = (&summary.dataset, &summary.spec);
    let mut params = Pairs::default();
    params.put("dataset", &dataset.name);
    params.put("dataset.version", &dataset.version);
    params.put("dataset.sha256", &dataset.sha256);
    params.put("dataset.methodology", &dataset.methodology.to_string());
    params.put("sample.preset", &dataset.sample.preset);
    params.put("sample.questions", &dataset.sample.n.to_string());
    params.put("sample.signature", &dataset.sample.signature);
    params.put("system", &spec.system);
    params.put("system.version", &spec.system_version);
    params.put("top_k", &spec.known_top_k().map_or_else(String::new, |top_k| top_k.to_string()));
    params.put("scenario", spec.scenario.name());
    params.put("answerer", if spec.known_answerer().is_some() { &spec.answerer } else { "" });
    params.put("judges", &spec.judges.join(", "));
    params.put("votes", &spec.votes.map_or_else(String::new, |votes| votes.to_string()));
    params.put("scorers", &spec.scorers.join(", "));
    for (key, value) in settings_of(spec) {
        params.put(&format!("system.{key}"), &plain(value));
    }
    for (key, value) in &spec.answerer_params {
        params.put(&format!("answerer.{key}"), &plain(value));
    }
    for (number, of_judge) in spec.judge_params.iter().enumerate() {
        for (key, value) in of_judge {
            params.put(&format!("judges.{number}.{key}"), &plain(value));
        }
    }
    params.0
}

/// Its figures by their names; what was not computed is left out.
pub(crate) fn metrics(summary: &Summary) -> Vec<(String, f64)> {
    let (headline, outcomes, total) = (&summary.headline, &summary.outcomes, &summary.total);
    let mut metrics = Pairs::default();
    metrics.figure("score", headline.value);
    metrics.ends("score", headline.ci95.as_ref());
    metrics.figure("score/strict", headline.strict);
    metrics.figure("coverage", outcomes.coverage);
    for (name, count) in [
        ("questions/scored", outcomes.scored),
        ("questions/abstained", outcomes.abstained),
        ("questions/infra_error", outcomes.infra_error),
        ("questions/not_run", outcomes.not_run),
        ("tokens/prompt", total.used.prompt_tokens),
        ("tokens/completion", total.used.completion_tokens),
        ("calls", total.used.calls),
    ] {
        metrics.figure(name, Some(count as f64));
    }
    metrics.figure("usd/paid", Some(total.used.usd));
    metrics.figure("usd/list", Some(total.usd_list));
    summary.scores.iter().for_each(|score| of_metric(&mut metrics, summary, score));
    for (level, by_k) in [("turn", &summary.retrieval.turn), ("session", &summary.retrieval.session)] {
        for (k, at) in by_k {
            metrics.figure(&format!("retrieval/{level}/recall_at_{k}"), at.recall);
            metrics.figure(&format!("retrieval/{level}/ndcg_at_{k}"), at.ndcg);
        }
    }
    if let Some(probe) = &summary.latency_probe {
        metrics.figure("latency_probe/p50_ms", probe.p50_ms);
        metrics.figure("latency_probe/p95_ms", probe.p95_ms);
        metrics.figure("latency_probe/p99_ms", probe.p99_ms);
    }
    metrics.0
}

/// A metric over all questions, and over those of each category.
fn of_metric(metrics: &mut Pairs<f64>, summary: &Summary, score: &MetricScore) {
    let name = format!("scores/{}", score.metric);
    metrics.figure(&name, score.total(summary.headline.estimator));
    metrics.ends(&name, score.ci95.as_ref());
    for of in &score.by_category {
        let name = format!("{name}/{}", of.category);
        metrics.figure(&name, of.value);
        metrics.ends(&name, of.ci95.as_ref());
    }
}

/// Names and values; of two values of one name the first stays.
struct Pairs<T>(Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Pairs<T> {
    fn add(&mut self, name: &str, value: T) {
        let name = allowed(name);
        if !self.0.iter().any(|(other, _)| *other == name) {
            self.0.push((name, value));
        }
    }
}

impl Pairs<String> {
    /// What says nothing is left out.
    fn put(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.add(name, shortened(value));
        }
    }
}

impl Pairs<f64> {
    fn figure(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.add(name, value);
        }
    }

    fn ends(&mut self, name: &str, ci95: Option<&Interval>) {
        self.figure(&format!("{name}/low"), ci95.map(|interval| interval.low));
        self.figure(&format!("{name}/high"), ci95.map(|interval| interval.high));
    }
}

/// A name of signs that every server takes: letters, digits, `_`, `-`, `.`, blanks and `/`.
fn allowed(name: &str) -> String {
    let sign = |c: char| if c.is_ascii_alphanumeric() || "_-. /".contains(c) { c } else { '_' };
    let mut name: String = name.chars().map(sign).take(MOST_NAME).collect();
    // a server takes names for paths, and none that leads elsewhere
    while name.contains("..") || name.contains("//") {
        name = name.replace("..", "._").replace("//", "/_");
    }
    name.trim_matches(['/', ' ', '.']).to_owned()
}

fn shortened(value: &str) -> String {
    match value.char_indices().nth(MOST_VALUE) {
        None => value.to_owned(),
        Some(_) => value.chars().take(MOST_VALUE - 1).chain(['…']).collect(),
    }
}

/// A text as it is, anything else as JSON.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    #[test]
    fn figures_settings_and_names_of_a_result_are_logged_and_no_texts() {
        let summary = golden::report();
        let record = record(&summary);
        let metric = |name: &str| record.metrics.iter().find(|(other, _)| other == name).map(|(_, value)| *value);
        assert_eq!(metric("score"), summary.headline.value);
        assert_eq!(metric("score/low"), summary.headline.ci95.as_ref().map(|interval| interval.low));
        let first = &summary.scores[0];
        let category = &first.by_category[0];
        assert_eq!(metric(&format!("scores/{}/{}", first.metric, category.category)), category.value);
        assert!(metric("usd/list").is_some() && metric("coverage") == summary.outcomes.coverage);
        let tag = |name: &str| record.tags.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str());
        assert_eq!((tag(RUN_TAG), tag(DIGEST_TAG)), (Some(&*summary.run.id), Some(&*summary.result_digest)));
        assert!(record.params.contains(&("dataset".to_owned(), summary.dataset.name.clone())));
        let told = format!("{record:?}");
        for worst in &summary.worst {
            for text in [&worst.gold, &worst.answer].into_iter().flatten().filter(|text| text.len() > 3) {
                assert!(!told.contains(text.as_str()), "{text} is logged");
            }
        }
    }

    #[test]
    fn names_are_those_that_a_server_takes_and_each_is_there_once() {
        assert_eq!(allowed("scores/judge.a@b/multi-hop"), "scores/judge.a_b/multi-hop");
        for nasty in ["../../x", "a//b", "/etc", "a\n'b", "....", "x/../y"] {
            let name = allowed(nasty);
            assert!(!name.contains("..") && !name.contains("//") && !name.starts_with('/'), "{nasty}: {name}");
        }
        assert_eq!(allowed(&"x".repeat(900)).len(), MOST_NAME);
        let mut pairs = Pairs::default();
        pairs.put("a@b", "1");
        pairs.put("a_b", "2");
        pairs.put("empty", "");
        pairs.put("long", &"ä".repeat(600));
        assert_eq!(pairs.0.len(), 2, "{:?}", pairs.0);
        assert_eq!((pairs.0[0].1.as_str(), pairs.0[1].1.chars().count()), ("1", MOST_VALUE));
    }

    #[test]
    fn places_of_a_system_are_no_settings() {
        let mut summary = golden::report();
        for key in ["adapter", "system.url"] {
            summary.spec.system_settings.insert(key.to_owned(), "http://inside".into());
        }
        summary.spec.system_settings.insert("bm25.k1".to_owned(), "0.9".into());
        let params = record(&summary).params;
        assert!(params.contains(&("system.bm25.k1".to_owned(), "0.9".to_owned())), "{params:?}");
        assert!(!format!("{params:?}").contains("inside") && !params.iter().any(|(name, _)| name == "system.adapter"));
    }
}
