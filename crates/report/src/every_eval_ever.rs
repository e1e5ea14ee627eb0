//! A result as a record of *Every Eval Ever*, the shared schema of evaluation results (version 0.3.0): the headline and every other
//! metric, over all and by category, each with its interval; who answered, who judged and by which prompt.

use std::collections::BTreeMap;

use bench_proto::{
    facts::judge_metric,
    metric::Better,
    summary::{Interval, MetricScore, Summary},
};
use serde_json::{Map, Value, json};

use crate::settings::settings_of;

/// The release of Every Eval Ever whose schema the files follow.
pub const SCHEMA_VERSION: &str = "0.3.0";

/// What a record says that no result knows.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// When the record is made, in seconds since 1970.
    pub made_at: i64,
    /// Version of this program.
    pub version: &'a str,
}

/// The record of a result.
#[must_use]
pub fn record(summary: &Summary, around: Around<'_>) -> Value {
    let (run, dataset) = (&summary.run, &summary.dataset);
    // the schema asks for a name, also where nobody says it
    let answerer = summary.spec.known_answerer().unwrap_or_else(|| "not-stated".to_owned());
    let model = model_info(&answerer, about_system(summary));
    let id = model["id"].as_str().unwrap_or_default();
    let mut record = json!({
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": format!("{}/{id}/{}", dataset.name, around.made_at),
        "retrieved_timestamp": around.made_at.to_string(),
        "source_metadata": {
            "source_name": run.name.clone().unwrap_or_else(|| run.id.clone()),
            "source_type": "evaluation_run",
            // whoever publishes the record knows
            "source_organization_name": "not stated",
            "evaluator_relationship": "other",
            "additional_details": texts([
                ("run", run.id.clone()),
                ("verdict", run.verdict.name().to_owned()),
                ("fingerprint", run.fingerprint.clone()),
                ("result_digest", summary.result_digest.clone()),
                ("labels", summary.labels.join("; ")),
            ]),
        },
        "eval_library": {"name": "bench-coord", "version": around.version},
        "model_info": model,
        "evaluation_results": results(summary),
    });
    if let Some(at) = &run.started_at {
        record["evaluation_timestamp"] = json!(at);
    }
    record
}

fn texts<const N: usize>(pairs: [(&str, String); N]) -> Value {
    Value::Object(pairs.into_iter().map(|(name, text)| (name.to_owned(), json!(text))).collect())
}

/// `openai:gpt-4o-mini` is the model `openai/gpt-4o-mini`.
fn model_info(shown: &str, mut details: Value) -> Value {
    let (provider, name) = shown.split_once(':').unwrap_or(("bench-coord", shown));
    // the schema asks for both, and no provider tells
    (details["deployment_type"], details["model_availability"]) = (json!("unknown"), json!("unknown"));
    json!({"name": name, "id": format!("{provider}/{name}"), "inference_platform": provider, "additional_details": details})
}

/// The memory system belongs to what was measured as much as the model does.
fn about_system(summary: &Summary) -> Value {
    let spec = &summary.spec;
    // a record is published: where the system is, and the code of one of one's own, stay here
    let settings: BTreeMap<&String, &Value> = settings_of(spec).collect();
    let settings = serde_json::to_string(&settings).unwrap_or_default();
    texts([
        ("memory_system", spec.system.clone()),
        ("memory_system_version", spec.system_version.clone()),
        ("memory_system_settings", settings),
        ("top_k", spec.known_top_k().map_or_else(|| "not stated".to_owned(), |top_k| top_k.to_string())),
        ("scenario", spec.scenario.name().to_owned()),
    ])
}

fn results(summary: &Summary) -> Vec<Value> {
    summary.scores.iter().flat_map(|score| of_metric(summary, score)).collect()
}

/// One metric over all questions, and over those of each category.
fn of_metric(summary: &Summary, score: &MetricScore) -> Vec<Value> {
    let headline = &summary.headline;
    let is_headline = headline.metric == score.metric;
    let (value, ci95, n) = match is_headline {
        true => (headline.value, headline.ci95.as_ref(), headline.n),
        false => (score.total(headline.estimator), score.ci95.as_ref(), score.n),
    };
    let name = format!("{} {}", summary.dataset.name, score.metric);
    let all = one(summary, score, (name.clone(), value, ci95, n));
    let categories = score
        .by_category
        .iter()
        .map(|of| one(summary, score, (format!("{name}: {}", of.category), of.value, of.ci95.as_ref(), of.n)));
    std::iter::once(all).chain(categories).flatten().collect()
}

/// A figure; none where it was not computed.
fn one(
    summary: &Summary,
    metric: &MetricScore,
    (name, value, ci95, n): (String, Option<f64>, Option<&Interval>, u64),
) -> Option<Value> {
    let mut uncertainty = json!({"num_samples": n});
    if let Some(Interval { low, high, method, .. }) = ci95 {
        uncertainty["confidence_interval"] =
            json!({"lower": low, "upper": high, "confidence_level": 0.95, "method": method});
    }
    let mut config = json!({
        "lower_is_better": metric.better == Better::Lower, "score_type": "continuous", "min_score": 0.0, "max_score": 1.0,
    });
    if let Some(judged) = judged(summary, &metric.metric) {
        config["llm_scoring"] = judged;
    }
    let sample = &summary.dataset.sample;
    Some(json!({
        "evaluation_name": name,
        "source_data": {
            "dataset_name": summary.dataset.name,
            "source_type": "other",
            "additional_details": texts([
                ("version", summary.dataset.version.clone()),
                ("sha256", summary.dataset.sha256.clone()),
                ("methodology", summary.dataset.methodology.to_string()),
                ("sample", sample.preset.clone()),
                ("sample_questions", sample.n.to_string()),
                ("sample_signature", sample.signature.clone()),
            ]),
        },
        "metric_config": config,
        "score_details": {"score": value?, "uncertainty": uncertainty},
        "generation_config": {"generation_args": generation(summary)},
    }))
}

/// What the schema knows of the answerer's parameters.
fn generation(summary: &Summary) -> Value {
    let known = |(name, parameter): (&str, &str)| {
        let value = summary.spec.answerer_params.get(parameter).filter(|value| value.is_number())?;
        Some((name.to_owned(), value.clone()))
    };
    let names = [
        ("temperature", "temperature"),
        ("top_p", "top_p"),
        ("max_tokens", "max_tokens"),
        ("max_tokens", "max_completion_tokens"),
    ];
    Value::Object(names.into_iter().filter_map(known).collect::<Map<String, Value>>())
}

/// The judge of a metric, and its prompts; none where a rule scores.
fn judged(summary: &Summary, metric: &str) -> Option<Value> {
    let spec = &summary.spec;
    // what else a judge measures stands behind its grade and a dot
    let role = metric.split('.').next().unwrap_or(metric);
    let (number, judge) = spec.judges.iter().enumerate().find(|(at, _)| role == judge_metric(*at))?;
    let of_role = |(name, text): (&String, &Option<bench_proto::summary::PromptText>)| {
        let name = name.strip_prefix(&format!("{role}."))?;
        let text = text.as_ref()?;
        Some((name.to_owned(), format!("{}\n\n{}", text.system, text.user)))
    };
    let prompts: BTreeMap<String, String> = spec.prompt_texts.iter().filter_map(of_role).collect();
    let joined: Vec<String> = prompts.into_iter().map(|(name, text)| format!("[{name}]\n{text}")).collect();
    let mut config = json!({"model_info": model_info(judge, texts([]))});
    let temperature = spec.judge_params.get(number).and_then(|params| params.get("temperature"));
    if let Some(temperature) = temperature.filter(|value| value.is_number()) {
        config["temperature"] = temperature.clone();
    }
    let votes = texts([("votes", spec.votes.unwrap_or(1).to_string())]);
    Some(json!({"judges": [config], "input_prompt": joined.join("\n\n"), "additional_details": votes}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;

    fn is_texts(value: &Value) -> bool {
        value.as_object().is_some_and(|all| all.values().all(Value::is_string))
    }

    #[test]
    fn a_record_has_what_the_schema_requires_in_the_types_that_it_wants() {
        let summary = golden::report();
        let record = record(&summary, Around { made_at: 1_790_000_000, version: "0.2.0" });
        for text in ["schema_version", "evaluation_id", "retrieved_timestamp"] {
            assert!(record[text].is_string(), "{text}: {record:#}");
        }
        assert_eq!(record["source_metadata"]["additional_details"]["labels"], summary.labels.join("; "));
        assert!(record["model_info"]["id"].as_str().is_some_and(|id| id.contains('/')), "{}", record["model_info"]);
        assert!(is_texts(&record["model_info"]["additional_details"]));
        let results = record["evaluation_results"].as_array().expect("results");
        let categories: usize = summary.scores.iter().map(|score| score.by_category.len()).sum();
        assert!(results.len() > summary.scores.len() && results.len() <= summary.scores.len() + categories);
        let headline = &results[0];
        assert_eq!(headline["score_details"]["score"], json!(summary.headline.value));
        let interval = &headline["score_details"]["uncertainty"]["confidence_interval"];
        assert_eq!(interval["lower"], json!(summary.headline.ci95.as_ref().map(|interval| interval.low)));
        for result in results {
            let config = &result["metric_config"];
            assert!(
                config["lower_is_better"].is_boolean() && result["score_details"]["score"].is_number(),
                "{result:#}"
            );
            assert_eq!((&config["min_score"], &config["max_score"]), (&json!(0.0), &json!(1.0)));
            assert_eq!(result["source_data"]["source_type"], "other");
            assert!(is_texts(&result["source_data"]["additional_details"]), "{result:#}");
        }
    }

    #[test]
    fn a_record_holds_neither_the_code_of_a_system_nor_where_it_is() {
        let mut summary = golden::report();
        let adapter =
            json!({"name": "mine", "code": {"files": {"mine.py": "SOURCE of-mine"}}, "url": "http://of-mine"});
        summary.spec.system_settings.insert("adapter".to_owned(), adapter);
        for place in ["system.url", "vector.folder", "vector.precomputed", "vector.queries", "faulty.memory"] {
            summary.spec.system_settings.insert(place.to_owned(), json!("/home/of-mine"));
        }
        summary.spec.system_settings.insert("bm25.k1".to_owned(), json!(0.9));
        let record = record(&summary, Around { made_at: 1_790_000_000, version: "0.2.0" });
        assert!(!record.to_string().contains("of-mine"), "{record:#}");
        let settings = &record["model_info"]["additional_details"]["memory_system_settings"];
        assert!(settings.as_str().is_some_and(|told| told.contains(r#""bm25.k1":0.9"#)), "{settings}");
    }

    #[test]
    fn a_judge_stands_with_its_metric_alone() {
        let mut summary = golden::report();
        summary.spec.judges = vec!["openai:a".to_owned(), "anthropic:b".to_owned()];
        let of = |metric: &str| judged(&summary, metric).map(|judged| judged["judges"][0]["model_info"]["id"].clone());
        assert_eq!((of("judge"), of("judge-2")), (Some(json!("openai/a")), Some(json!("anthropic/b"))));
        assert_eq!((of("judge-3"), of("locomo-f1"), of("judge-0")), (None, None, None));
    }
}
