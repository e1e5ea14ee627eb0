//! How the Hebb harness counts retrieval, for comparison with its published figures. Its `recall_all` is a share, its
//! sessions of LoCoMo are bare numbers that collide where conversations are pooled, and its substring rule lets one letter count.

use std::collections::{BTreeSet, HashSet};

use bench_proto::{retrieval::RetrievalMetrics, step::RankHits};

use crate::scorers::text::trim;

/// LoCoMo: what of a question's evidence sessions was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRecall {
    /// Numbers of the evidence sessions; entries of another form than `D<session>:<turn>` are dropped.
    pub sessions: BTreeSet<String>,
    /// Some of them was found, or there is none.
    pub correct: bool,
    /// Share of them that was found; 1 without any.
    pub recall: f64,
    /// Whether it counts at all: questions without a session leave the denominator.
    pub scorable: bool,
}

/// LoCoMo: the sessions of a question's evidence among those of what was retrieved, by their bare numbers.
#[must_use]
pub fn locomo_session_recall(evidence: &[&str], retrieved: &[&str]) -> SessionRecall {
    let sessions: BTreeSet<String> = evidence.iter().filter_map(|entry| session_number(entry)).collect();
    let found = sessions.iter().filter(|session| retrieved.contains(&session.as_str())).count();
    let scorable = !sessions.is_empty();
    let recall = if scorable { found as f64 / sessions.len() as f64 } else { 1.0 };
    SessionRecall { correct: !scorable || found > 0, sessions, recall, scorable }
}

/// The session of an entry that is exactly `D<session>:<turn>`, in either case and with blanks between.
fn session_number(entry: &str) -> Option<String> {
    let (session, turn) = entry.trim().strip_prefix(['D', 'd'])?.split_once(':')?;
    let number = |text: &str| -> Option<u64> {
        let digits = text.trim();
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    number(turn)?;
    number(session).map(|session| session.to_string())
}

/// LongMemEval: sessions in the order of the results and then of what is related to them, each once. In [`RetrievalMetrics`]
/// its `recall_any@k`, its `ndcg@k`, and as [`RetrievalMetrics::recall`] what it calls `recall_all@k`.
#[must_use]
pub fn longmemeval_sessions(results: &[&str], related: &[&str], answers: &[&str], k: u32) -> Option<RetrievalMetrics> {
    let ranked = results.iter().chain(related).copied();
    RetrievalMetrics::at(&RankHits::find(ranked, answers.iter().copied()), k)
}

/// MemBench: a target step is among the first k memories, by the number in its session or by that in the whole dialogue: 1 or 0.
#[must_use]
pub fn membench_hit(in_session: &[&str], in_dialogue: &[&str], targets: &[&str], k: usize) -> f64 {
    let first = in_session.iter().take(k).chain(in_dialogue.iter().take(k));
    f64::from(u8::from(first.into_iter().any(|step| targets.contains(step))))
}

/// ConvoMem: share of the evidence texts that are inside a retrieved memory, or that a retrieved memory is inside of; case and
/// blanks around do not matter. An evidence text of blanks is never found, a memory of blanks is inside of everything.
/// `None` without evidence.
#[must_use]
pub fn convomem_substring_recall(evidence: &[&str], memories: &[&str]) -> Option<f64> {
    let plain = |text: &&str| trim(text).to_lowercase();
    let memories: HashSet<String> = memories.iter().filter(|memory| !memory.is_empty()).map(plain).collect();
    let holds = |text: &String| memories.iter().any(|memory| memory.contains(text) || text.contains(memory));
    let found = evidence.iter().map(plain).filter(|text| !text.is_empty() && holds(text)).count();
    (!evidence.is_empty()).then(|| found as f64 / evidence.len() as f64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::Value;

    use super::*;
    use crate::scorers::{reference, retrieval::chance_of_a_hit};

    fn vectors() -> Option<Value> {
        reference::json("vectors/hebb-amplihack-precisionmembench.json")
    }

    fn texts<'a>(case: &'a Value, key: &str) -> Vec<&'a str> {
        reference::list(&case[key]).iter().map(reference::str).collect()
    }

    #[test]
    fn sessions_are_read_strictly() {
        let sessions = |entry: &str| locomo_session_recall(&[entry], &[]).sessions.into_iter().next();
        assert_eq!(sessions("D30:05").as_deref(), Some("30"));
        for broken in ["D8:6; D9:17", "D", "D:11:26", "D9:1 D4:4 D4:6", "8:6", "D8", "D-1:2", "Dé:1"] {
            assert_eq!(sessions(broken), None, "{broken}");
        }
    }

    #[test]
    fn hebb_locomo_session_recall() {
        let Some(vectors) = vectors() else { return };
        for case in reference::list(&vectors["hebb_locomo_session_recall"]["cases"]) {
            let got = locomo_session_recall(&texts(case, "evidence"), &texts(case, "retrieved_sessions"));
            assert_eq!(got.sessions.iter().map(String::as_str).collect::<Vec<_>>(), texts(case, "gt_sessions"));
            assert_eq!(
                (Some(got.correct), Some(got.scorable)),
                (case["is_correct"].as_bool(), case["scorable"].as_bool())
            );
            assert_eq!(got.recall, reference::number(&case["recall"]), "{case}");
        }
    }

    #[test]
    fn hebb_longmemeval_session_metrics() {
        let Some(vectors) = vectors() else { return };
        let mut checked = 0;
        for case in reference::list(&vectors["hebb_longmemeval_session_metrics"]["cases"]) {
            let [results, related, answers] =
                ["result_session_ids", "related_session_ids", "answer_session_ids"].map(|key| texts(case, key));
            for k in [1, 3, 5, 10] {
                let got = longmemeval_sessions(&results, &related, &answers, k).expect("there is an answer");
                for (ours, theirs) in [(got.recall_any, "recall_any"), (got.recall, "recall_all"), (got.ndcg, "ndcg")] {
                    let expected = reference::number(&case["metrics"][format!("{theirs}@{k}")]);
                    assert!((ours - expected).abs() < 1e-12, "{theirs}@{k}: {case}");
                    checked += 1;
                }
            }
        }
        assert!(checked >= 48, "{checked}");
    }

    #[test]
    fn hebb_ranked_metrics() {
        let Some(vectors) = vectors() else { return };
        for case in reference::list(&vectors["hebb_ranked_metrics"]["cases"]) {
            let k = u32::try_from(case["k"].as_u64().expect("a cut-off")).expect("fits");
            let got = longmemeval_sessions(&texts(case, "retrieved"), &[], &texts(case, "relevant"), k);
            let got = got.map_or([0.0; 4], |got| [got.recall, got.precision_of_returned, got.mrr, got.ndcg]);
            for (ours, theirs) in got.into_iter().zip(["recall", "precision", "mrr", "ndcg"]) {
                assert!((ours - reference::number(&case[theirs])).abs() < 1e-12, "{theirs}: {case}");
            }
        }
    }

    #[test]
    fn hebb_membench_hit() {
        let Some(vectors) = vectors() else { return };
        for case in reference::list(&vectors["hebb_membench_hit"]["cases"]) {
            let [in_session, in_dialogue, targets] = ["ranked_sid", "ranked_global_idx", "target_step_ids"]
                .map(|key| reference::list(&case[key]).iter().map(Value::to_string).collect::<Vec<_>>());
            let [in_session, in_dialogue, targets] =
                [&in_session, &in_dialogue, &targets].map(|steps| steps.iter().map(String::as_str).collect::<Vec<_>>());
            for (name, expected) in case["hits"].as_object().expect("hits by cut-off") {
                let k = name.strip_prefix("hit@").and_then(|k| k.parse().ok()).expect("a cut-off");
                assert_eq!(membench_hit(&in_session, &in_dialogue, &targets, k), reference::number(expected), "{case}");
            }
        }
    }

    #[test]
    fn hebb_convomem_substring_recall() {
        let Some(vectors) = vectors() else { return };
        for case in reference::list(&vectors["hebb_convomem_substring_recall"]["cases"]) {
            let recall = convomem_substring_recall(&texts(case, "evidence"), &texts(case, "memories"));
            assert_eq!(recall, Some(reference::number(&case["recall"])), "{case}");
        }
        assert_eq!(convomem_substring_recall(&["I like tea"], &["e"]), Some(1.0), "one letter counts");
        assert_eq!(convomem_substring_recall(&["I like tea"], &[" "]), Some(1.0), "blanks are inside of everything");
        assert_eq!(convomem_substring_recall(&["I like tea"], &[""]), Some(0.0), "and nothing is no memory");
        assert_eq!(convomem_substring_recall(&["", " ", "tea"], &["tea"]), Some(1.0 / 3.0), "blanks are never found");
        assert_eq!(convomem_substring_recall(&[], &["x"]), None);
    }

    /// What a random retriever gets on LoCoMo: in one pool by bare session numbers, in one pool by conversation and session, and
    /// in its own conversation. The harness' corpus is rebuilt by its rule: utterances of 20 characters or more, and pairs of turns,
    /// which go on over the ends of sessions and count to that of their first turn.
    #[test]
    fn locomo_session_recall_chance() {
        let (Some(vectors), Some(data)) = (vectors(), reference::json("data/locomo/locomo10.json")) else { return };
        let expected = &vectors["locomo_session_recall_chance"];
        let mut of_session: HashMap<(usize, String), u64> = HashMap::new();
        for (conversation, sample) in reference::list(&data).iter().enumerate() {
            let sessions = sample["conversation"].as_object().expect("a conversation").iter();
            let mut sessions: Vec<(u32, &Vec<Value>)> = sessions
                .filter_map(|(key, turns)| Some((key.strip_prefix("session_")?.parse().ok()?, turns.as_array()?)))
                .collect();
            sessions.sort_unstable_by_key(|(session, _)| *session);
            let turns: Vec<(u32, &str)> = sessions
                .iter()
                .flat_map(|(session, turns)| turns.iter().map(|turn| (*session, reference::str(&turn["text"]))))
                .collect();
            let long = turns.iter().filter(|(_, text)| text.trim().chars().count() >= 20);
            for (session, _) in long.chain(turns.chunks_exact(2).map(|pair| &pair[0])) {
                *of_session.entry((conversation, session.to_string())).or_default() += 1;
            }
        }
        let memories: u64 = of_session.values().sum();
        assert_eq!(Some(memories), expected["memories"].as_u64());
        let count = |of: &dyn Fn(usize, &str) -> bool| -> u64 {
            of_session.iter().filter(|((conversation, session), _)| of(*conversation, session)).map(|(_, n)| n).sum()
        };
        let (mut asked, mut scorable, mut sums) = (0_u64, 0_u64, [0.0; 3]);
        for (conversation, sample) in reference::list(&data).iter().enumerate() {
            let own = count(&|of, _| of == conversation);
            for qa in reference::list(&sample["qa"]) {
                asked += 1;
                let gold = locomo_session_recall(&texts(qa, "evidence"), &[]);
                if !gold.scorable {
                    continue;
                }
                scorable += 1;
                let pooled = count(&|_, session| gold.sessions.contains(session));
                let named = count(&|of, session| of == conversation && gold.sessions.contains(session));
                for (sum, (pool, relevant)) in
                    sums.iter_mut().zip([(memories, pooled), (memories, named), (own, named)])
                {
                    *sum += chance_of_a_hit(pool, relevant, 10);
                }
            }
        }
        assert_eq!((Some(asked), Some(scorable)), (expected["questions"].as_u64(), expected["scorable"].as_u64()));
        let published = &expected["expected_R_at_10_of_a_random_retriever"];
        for (sum, key) in sums.into_iter().zip([
            "all_conversations_pooled_session_number_only_as_hebb_v4",
            "all_conversations_pooled_conversation_and_session",
            "own_conversation_only",
        ]) {
            let (mean, expected) = (sum / scorable as f64, reference::number(&published[key]));
            assert!((mean - expected).abs() < 5e-5, "{key}: {mean}, published {expected}");
        }
    }
}
