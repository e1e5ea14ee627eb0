//! Rules that score lines only: other people's counting of recalls and orders, from ids as they are written in the line. A run has
//! the same figures by names with a cut-off (`recall@10`, `session-recall-any@5`) wherever these mean the same.
//!
//! Each takes the fields of its published vectors, and `ranked` and `gold` for what every rule has.

use bench_proto::{retrieval::RetrievalMetrics, step::RankHits};
use serde_json::{Map, Value};

use super::{
    Origin,
    beam_order::ordering,
    locomo_recall::locomo_recall,
    retrieval::{
        hebb::{convomem_substring_recall, locomo_session_recall, longmemeval_sessions, membench_hit},
        longmemeval::{Figures, figures, figures_by_session},
        membench::step_recall,
        repeats,
    },
};

/// Cut-off when a line names none.
const DEFAULT_K: u64 = 10;

/// The longest list that is compared pair by pair.
const MOST_PAIRED: usize = 5_000;

/// A line's fields.
pub type Line = Map<String, Value>;

/// The score, and figures beside it by their names; null where there is nothing to measure.
type Scored = Result<(Option<f64>, Vec<(&'static str, Option<f64>)>), String>;

/// A way to count a recall by single lines of what is expected.
pub struct LineRule {
    /// Its name in flags and reports.
    pub name: &'static str,
    /// One line for `score --list`.
    pub description: &'static str,
    /// Whose it is.
    pub origin: Origin,
    /// Fields of its lines; `a|b`: one of both.
    pub takes: &'static str,
    score: fn(&Line) -> Scored,
}

impl LineRule {
    /// The line's score, and what it has beside it.
    ///
    /// # Errors
    /// In words: a field that is missing or of another kind.
    pub fn score(&self, line: &Line) -> Scored {
        (self.score)(line)
    }
}

/// All rules for lines: one entry each.
pub static RULES: &[LineRule] = &[
    LineRule {
        name: "retrieval",
        description: "recall, precision, MRR and NDCG at k of ranked ids",
        origin: Origin { source: "ours (bench_proto::retrieval)", vectors: &["ranked_metrics", "hebb_ranked_metrics"] },
        takes: "ranked, gold, k",
        score: |line| {
            let at = RetrievalMetrics::at(&rank_hits(&ranked(line)?, &gold(line)?), cut_off(line)?);
            let of = |value: fn(&RetrievalMetrics) -> f64| at.as_ref().map(value);
            let beside = vec![
                ("recall_any", of(|m| m.recall_any)),
                ("recall_all", of(|m| m.recall_all)),
                ("recall", of(|m| m.recall)),
                ("precision", of(|m| m.precision)),
                ("precision_of_returned", of(|m| m.precision_of_returned)),
                ("mrr", of(|m| m.mrr)),
                ("ndcg", of(|m| m.ndcg)),
            ];
            Ok((of(|m| m.recall), beside))
        },
    },
    LineRule {
        name: "ranked-repeats",
        description: "the same where an id that comes back again counts again: NDCG can exceed 1; without k to the end, 0 without gold",
        origin: Origin {
            source: "Astrocyte, eval/metrics.py; hebb-mind, eval/metrics/retrieval.py",
            vectors: &["ranked_metrics", "hebb_ranked_metrics"],
        },
        takes: "ranked|retrieved, gold|relevant, k",
        score: |line| {
            let ranked = ids(line, &["ranked", "retrieved"])?.ok_or("`ranked` must be a list of ids")?;
            let gold = ids(line, &["gold", "relevant"])?.unwrap_or_default();
            let k = line.get("k").filter(|k| !k.is_null()).map(|_| cut_off(line)).transpose()?;
            let got = repeats::figures(&texts(&ranked), &texts(&gold), k.map(|k| k as usize));
            let beside = vec![
                ("recall", Some(got.recall)),
                ("precision", Some(got.precision)),
                ("mrr", Some(got.mrr)),
                ("ndcg", Some(got.ndcg)),
            ];
            Ok((Some(got.recall), beside))
        },
    },
    LineRule {
        name: "longmemeval-retrieval",
        description: "LongMemEval's own counting at k: recall of any and of all, NDCG in which ranks 1 and 2 weigh the same",
        origin: Origin { source: "LongMemEval, src/retrieval/eval_utils.py", vectors: &["longmemeval_retrieval"] },
        takes: "ranked, gold|correct_docs, corpus|corpus_ids, k, by_session (turns are counted by their sessions)",
        score: |line| {
            let (ranked, gold) = (ranked(line)?, ids(line, &["gold", "correct_docs"])?.unwrap_or_default());
            let corpus = ids(line, &["corpus", "corpus_ids"])?.ok_or("`corpus` must be a list of ids")?;
            let by_session = match line.get("by_session") {
                None | Some(Value::Null | Value::Bool(false)) => false,
                Some(Value::Bool(true)) => true,
                Some(_) => return Err("`by_session` must be true or false".to_owned()),
            };
            let count = if by_session { figures_by_session } else { figures };
            let Figures { recall_any, recall_all, ndcg_any } =
                count(&texts(&ranked), &texts(&gold), &texts(&corpus), cut_off(line)? as usize);
            let beside =
                vec![("recall_any", Some(recall_any)), ("recall_all", Some(recall_all)), ("ndcg_any", Some(ndcg_any))];
            Ok((Some(recall_any), beside))
        },
    },
    LineRule {
        name: "locomo-recall",
        description: "recall as LoCoMo's official program prints it: no ranks, repeated evidence counts twice, 1 without evidence",
        origin: Origin {
            source: "LoCoMo, task_eval/evaluation.py::eval_question_answering",
            vectors: &["recall_vectors"],
        },
        takes: "ranked|context (null: none was kept), gold|evidence",
        score: |line| {
            let evidence = ids(line, &["gold", "evidence"])?.unwrap_or_default();
            let context = ids(line, &["ranked", "context"])?;
            let context: Option<Vec<&str>> = context.as_deref().map(texts);
            Ok((Some(locomo_recall(&texts(&evidence), context.as_deref())), Vec::new()))
        },
    },
    LineRule {
        name: "step-recall",
        description: "share of the distinct target steps among the retrieved ones; 0 where nothing came, null without targets",
        origin: Origin { source: "MemBench, benchmark/env/Membenenv.py::get_recall", vectors: &["membench"] },
        takes: "ranked|retrieved (null: nothing came), gold|target_step_id",
        score: |line| {
            let retrieved = ids(line, &["ranked", "retrieved"])?;
            let targets = ids(line, &["gold", "target_step_id"])?.unwrap_or_default();
            Ok((step_recall(&texts(retrieved.as_deref().unwrap_or_default()), &texts(&targets)), Vec::new()))
        },
    },
    LineRule {
        name: "hebb-hit",
        description: "1 when a target step is among the first k, by its number in the session or in the whole dialogue",
        origin: Origin { source: "hebb-mind, eval/benchmarks/membench_bench.py", vectors: &["hebb_membench_hit"] },
        takes: "ranked|ranked_sid, ranked_global_idx, gold|target_step_ids, k",
        score: |line| {
            let in_session = ids(line, &["ranked", "ranked_sid"])?.ok_or("`ranked` must be a list of ids")?;
            let in_dialogue = ids(line, &["ranked_global_idx"])?.unwrap_or_default();
            let targets = ids(line, &["gold", "target_step_ids"])?.unwrap_or_default();
            let k = cut_off(line)? as usize;
            let hit = membench_hit(&texts(&in_session), &texts(&in_dialogue), &texts(&targets), k);
            Ok(((!targets.is_empty()).then_some(hit), Vec::new()))
        },
    },
    LineRule {
        name: "hebb-session-recall",
        description: "1 when an evidence session of LoCoMo was found, by its bare number; null without one; beside it the share",
        origin: Origin {
            source: "hebb-mind, eval/benchmarks/locomo_bench.py::_evidence_recall",
            vectors: &["hebb_locomo_session_recall", "locomo_session_recall_chance"],
        },
        takes: "ranked|retrieved_sessions (numbers of sessions), gold|evidence (D1:3)",
        score: |line| {
            let retrieved = ids(line, &["ranked", "retrieved_sessions"])?.unwrap_or_default();
            let evidence = ids(line, &["gold", "evidence"])?.unwrap_or_default();
            let found = locomo_session_recall(&texts(&evidence), &texts(&retrieved));
            let counts = |figure: f64| found.scorable.then_some(figure);
            Ok((counts(f64::from(u8::from(found.correct))), vec![("recall", counts(found.recall))]))
        },
    },
    LineRule {
        name: "hebb-session-metrics",
        description: "distinct sessions at k, those of related memories behind; recall_all is the share that was found",
        origin: Origin {
            source: "hebb-mind, eval/benchmarks/longmemeval_bench.py and eval/metrics/retrieval.py",
            vectors: &["hebb_longmemeval_session_metrics"],
        },
        takes: "ranked|result_session_ids, related_session_ids, gold|answer_session_ids, k",
        score: |line| {
            let results = ids(line, &["ranked", "result_session_ids"])?.unwrap_or_default();
            let related = ids(line, &["related_session_ids"])?.unwrap_or_default();
            let answers = ids(line, &["gold", "answer_session_ids"])?.unwrap_or_default();
            let at = longmemeval_sessions(&texts(&results), &texts(&related), &texts(&answers), cut_off(line)?);
            let of = |value: fn(&RetrievalMetrics) -> f64| at.as_ref().map(value);
            let beside =
                vec![("recall_any", of(|m| m.recall_any)), ("recall_all", of(|m| m.recall)), ("ndcg", of(|m| m.ndcg))];
            Ok((of(|m| m.recall_any), beside))
        },
    },
    LineRule {
        name: "convomem-substring",
        description: "share of the evidence texts inside a retrieved memory, or around one: a single letter counts; null without",
        origin: Origin {
            source: "hebb-mind, eval/benchmarks/convomem_bench.py::_evidence_substring_recall",
            vectors: &["hebb_convomem_substring_recall"],
        },
        takes: "ranked|memories (texts), gold|evidence (texts)",
        score: |line| {
            let memories = paired(ids(line, &["ranked", "memories"])?.unwrap_or_default())?;
            let evidence = paired(ids(line, &["gold", "evidence"])?.unwrap_or_default())?;
            Ok((convomem_substring_recall(&texts(&evidence), &texts(&memories)), Vec::new()))
        },
    },
    LineRule {
        name: "beam-order",
        description: "order of events: (Kendall's tau-b + 1) / 2 over what both sides name; null where there is no order",
        origin: Origin {
            source: "BEAM, src/evaluation/compute_metrics.py::event_ordering_score",
            vectors: &["beam_ordering"],
        },
        takes: "ranked|system_aligned (what was told, in its order), gold|reference",
        score: |line| {
            let told = paired(ids(line, &["ranked", "system_aligned"])?.ok_or("`ranked` must be a list")?)?;
            let expected = paired(ids(line, &["gold", "reference"])?.ok_or("`gold` must be a list")?)?;
            let got = ordering(&texts(&expected), &texts(&told));
            let beside = vec![
                ("precision", Some(got.precision)),
                ("recall", Some(got.recall)),
                ("f1", Some(got.f1)),
                ("tau_b", got.tau_b),
                ("tau_norm", got.score()),
                ("final_score", got.product()),
            ];
            Ok((got.score(), beside))
        },
    },
];

/// The rule of a name.
pub(super) fn find(name: &str) -> Option<&'static LineRule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// The first of some fields that is there, as ids or texts; none where it is null or absent.
fn ids(line: &Line, keys: &[&str]) -> Result<Option<Vec<String>>, String> {
    match keys.iter().find_map(|key| Some((key, line.get(*key).filter(|value| !value.is_null())?))) {
        None => Ok(None),
        Some((key, Value::Array(items))) => strings(items, key).map(Some),
        Some((key, _)) => Err(format!("`{key}` must be a list of ids")),
    }
}

/// Texts and numbers as texts.
pub(super) fn strings(items: &[Value], key: &str) -> Result<Vec<String>, String> {
    let text = |item: &Value| match item {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(format!("`{key}` must hold strings")),
    };
    items.iter().map(text).collect()
}

pub(super) fn ranked(line: &Line) -> Result<Vec<String>, String> {
    ids(line, &["ranked"])?.ok_or_else(|| "`ranked` must be a list of ids".to_owned())
}

pub(super) fn gold(line: &Line) -> Result<Vec<String>, String> {
    Ok(ids(line, &["gold"])?.unwrap_or_default())
}

/// The ranks of gold ids among ranked ones.
pub(super) fn rank_hits(ranked: &[String], gold: &[String]) -> RankHits {
    RankHits::find(ranked.iter().map(String::as_str), gold.iter().map(String::as_str))
}

fn texts(ids: &[String]) -> Vec<&str> {
    ids.iter().map(String::as_str).collect()
}

/// Lists whose pairs are looked at must not be endless.
fn paired(items: Vec<String>) -> Result<Vec<String>, String> {
    match items.len() {
        ..=MOST_PAIRED => Ok(items),
        more => Err(format!("a list of {more} is too long; at most {MOST_PAIRED}")),
    }
}

fn cut_off(line: &Line) -> Result<u32, String> {
    let k = match line.get("k") {
        None | Some(Value::Null) => DEFAULT_K,
        Some(k) => k.as_u64().filter(|&k| k > 0).ok_or("`k` must be a whole number of at least 1")?,
    };
    Ok(u32::try_from(k).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::scorers::{reference, score_line::score_line};

    fn cases(file: &str, group: &str) -> Vec<Value> {
        let Some(vectors) = reference::json(&format!("vectors/{file}.json")) else { return Vec::new() };
        reference::list(if group.is_empty() { &vectors["cases"] } else { &vectors[group]["cases"] }).to_vec()
    }

    /// Each rule reads the published lines as they are.
    #[test]
    fn lines_of_published_vectors() {
        const HEBB: &str = "hebb-amplihack-precisionmembench";
        for case in cases("beam-ordering", "") {
            let scored = score_line("beam-order", &case);
            assert_eq!(scored["score"], case["tau_norm"], "{case}");
            assert_eq!(scored["scores"]["final_score"], case["final_score"], "{case}");
        }
        for case in cases("membench", "") {
            let expected = if case.get("official_error").is_some() { Value::Null } else { case["recall"].clone() };
            assert_eq!(score_line("step-recall", &case)["score"], expected, "{case}");
        }
        for case in cases(HEBB, "hebb_convomem_substring_recall") {
            assert_eq!(score_line("convomem-substring", &case)["score"], case["recall"], "{case}");
        }
        for case in cases(HEBB, "hebb_locomo_session_recall") {
            let scored = score_line("hebb-session-recall", &case);
            let counts = case["scorable"] == json!(true);
            assert_eq!(scored["scores"]["recall"], if counts { case["recall"].clone() } else { Value::Null }, "{case}");
            assert_eq!(
                scored["score"].as_f64().map(|score| json!(score == 1.0)),
                counts.then(|| case["is_correct"].clone())
            );
        }
        for mut case in cases(HEBB, "hebb_longmemeval_session_metrics") {
            for k in [1, 3, 5, 10] {
                case["k"] = json!(k);
                let scored = score_line("hebb-session-metrics", &case);
                for name in ["recall_any", "recall_all", "ndcg"] {
                    let (got, published) = (&scored["scores"][name], &case["metrics"][format!("{name}@{k}")]);
                    let difference = reference::number(got) - reference::number(published);
                    assert!(difference.abs() < 1e-12, "{name}@{k}: {case}");
                }
            }
        }
        for mut case in cases(HEBB, "hebb_membench_hit") {
            for (name, expected) in case["hits"].as_object().expect("hits").clone() {
                case["k"] = json!(name["hit@".len()..].parse::<u32>().expect("a cut-off"));
                assert_eq!(score_line("hebb-hit", &case)["score"], expected, "{case}");
            }
        }
    }

    #[test]
    fn lines_by_the_fields_that_all_rules_have() {
        for (rule, line, expected) in [
            ("beam-order", json!({"ranked": ["b", "a"], "gold": ["a", "b"]}), json!(0.0)),
            ("beam-order", json!({"ranked": ["a"], "gold": ["a"]}), Value::Null),
            ("step-recall", json!({"ranked": [3, 3], "gold": [3, 4]}), json!(0.5)),
            ("step-recall", json!({"ranked": null, "gold": [3]}), json!(0.0)),
            ("locomo-recall", json!({"ranked": ["D1:3"], "gold": ["D1:3", "D2:1"]}), json!(0.5)),
            ("locomo-recall", json!({"gold": ["D1:3"]}), json!(1.0)),
            ("convomem-substring", json!({"ranked": ["so I like tea"], "gold": ["I like tea", "x"]}), json!(0.5)),
            ("hebb-session-recall", json!({"ranked": [3], "gold": ["D3:1", "D4:1"]}), json!(1.0)),
            ("hebb-session-recall", json!({"ranked": [3], "gold": ["D"]}), Value::Null),
            ("hebb-session-metrics", json!({"ranked": ["b", "a"], "gold": ["a"], "k": 1}), json!(0.0)),
            ("hebb-hit", json!({"ranked": [3], "gold": [3]}), json!(1.0)),
            ("ranked-repeats", json!({"ranked": ["x", "a", "a"], "gold": ["a"]}), json!(1.0)),
            ("ranked-repeats", json!({"ranked": ["x", "a", "a"], "gold": ["a"], "k": 1}), json!(0.0)),
            (
                "longmemeval-retrieval",
                json!({"ranked": ["a_1", "b_1"], "gold": ["b_1"], "corpus": ["a_1", "b_1"], "k": 2, "by_session": true}),
                json!(1.0),
            ),
        ] {
            let scored = score_line(rule, &line);
            assert_eq!(scored.get("score"), Some(&expected), "{rule} {scored}");
        }
        for (rule, line) in [
            ("beam-order", json!({"ranked": vec!["a"; MOST_PAIRED + 1], "gold": ["a"]})),
            ("beam-order", json!({"ranked": ["a"]})),
            ("longmemeval-retrieval", json!({"ranked": ["a"], "gold": ["a"]})),
            ("longmemeval-retrieval", json!({"ranked": ["a"], "corpus": ["a"], "by_session": 1})),
            ("step-recall", json!({"ranked": "a", "gold": ["a"]})),
            ("retrieval", json!({"ranked": ["a"], "gold": [["a"]]})),
        ] {
            let scored = score_line(rule, &line);
            assert!(scored["error"].is_string() && scored.get("score").is_none(), "{rule} {scored}");
        }
    }

    proptest! {
        #[test]
        fn every_rule_is_bounded_and_none_panics(
            ranked in prop::collection::vec("D?[0-3]:?[0-2]?|[a-c]{0,2}", 0..8),
            gold in prop::collection::vec("D?[0-3]:?[0-2]?|[a-c]{0,2}", 0..8),
            k in 1_u32..9,
        ) {
            let corpus = [&ranked[..], &gold[..]].concat();
            let line = json!({"ranked": &ranked, "gold": &gold, "corpus": corpus, "k": k});
            for rule in RULES {
                let (score, beside) = rule.score(line.as_object().expect("an object")).expect("a line of every rule");
                for figure in beside.iter().filter(|(name, _)| *name != "tau_b").filter_map(|(_, figure)| *figure).chain(score) {
                    // a list that names an id twice is counted twice by these
                    let bounded = figure <= 1.0 + 1e-12 || ["longmemeval-retrieval", "ranked-repeats"].contains(&rule.name);
                    prop_assert!(figure >= 0.0 && bounded, "{}: {figure}", rule.name);
                }
            }
        }
    }
}
