//! Scores by golds of every kind, of answers and of recalls: whatever changes one raises its scorer's version.

use bench_proto::{
    assertions::{Assertions, Beside, ListAssertions},
    dataset::{Gold, GoldRecord, KeywordRubric},
    step::{HitLevel, Retrieval, RetrievedHit},
};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::{
    ScoreCase, Scorer, category,
    registry::{self, SCORERS},
    retrieval,
};

const ANSWERS: [Option<&str>; 11] = [
    None,
    Some(""),
    Some("She likes green tea, not coffee"),
    Some("(c)"),
    Some("I think it is (c)"),
    Some("c"),
    Some("The answer is C."),
    Some("(a) is wrong, (c)"),
    Some("evergreen teas"),
    Some("2022"),
    Some("I do not know"),
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn golds() -> Vec<Gold> {
    let keywords = KeywordRubric {
        required_keywords: words(&["tea", "green"]),
        acceptable_paraphrases: words(&["matcha"]),
        incorrect_patterns: words(&["coffee"]),
        ..KeywordRubric::default()
    };
    let relevant = ListAssertions {
        must_include: words(&["D1:1", "D2:1"]),
        must_exclude: words(&["D3:2"]),
        min_count: Some(1),
        ..ListAssertions::default()
    };
    let beside = Beside {
        known: words(&["D1:1", "D1:2", "D2:1", "D3:1", "D3:2"]),
        drift: words(&["D1:2"]),
        max_memories: 5,
        ..Beside::default()
    };
    vec![
        Gold::Text("Green tea".to_owned()),
        Gold::Number(2022.into()),
        Gold::Choice("(c)".to_owned()),
        Gold::AnyOf(words(&["a cup of tea", "likes green tea"])),
        Gold::Rubric(words(&["tea", "likes"])),
        Gold::Keywords(KeywordRubric { incorrect_patterns: Vec::new(), ..keywords.clone() }),
        Gold::Keywords(keywords),
        Gold::Assertions(Box::new(Assertions { relevant, beside, ..Assertions::default() })),
        Gold::Retrieval { must: words(&["D1:1"]), must_not: Vec::new() },
        Gold::Unanswerable("nobody said".to_owned()),
        Gold::Abstain,
    ]
}

/// Ids of what is found, best first.
fn recalls() -> [Option<Vec<&'static str>>; 6] {
    [
        None,
        Some(vec![]),
        Some(vec!["D1:2", "D1:1", "D2:1"]),
        Some(vec!["D3:1", "D3:2", "D2:2", "D2:1", "D4:1", "D1:2", "D1:1"]),
        Some(vec!["D1:1", "D1:1"]),
        Some(vec!["D1:2", "D2:2"]),
    ]
}

/// All scores of a scorer, by all its metrics, in a fixed order.
fn scores_of(scorer: &dyn Scorer) -> Vec<Option<f64>> {
    let mut scores = Vec::new();
    for gold in golds() {
        let (evidence_turns, evidence_sessions) = (words(&["D1:1", "D2:1"]), words(&["D1", "D2"]));
        let official = [("official_turns", json!(["D2:1"])), ("official_sessions", json!(["D2"]))];
        let hidden = official.map(|(key, ids)| (key.to_owned(), ids)).into();
        let record = GoldRecord { gold, evidence_turns, evidence_sessions, hidden, ..GoldRecord::default() };
        for recall in recalls() {
            let hit = |id: &&str| RetrievedHit {
                id: (*id).to_owned(),
                session_id: id.split(':').next().unwrap_or_default().to_owned(),
                level: Some(HitLevel::Turn),
                ..RetrievedHit::default()
            };
            let hits: Vec<RetrievedHit> = recall.iter().flatten().map(hit).collect();
            let placed = hits.iter().map(|hit| (hit.id.as_str(), hit.session_id.as_str(), hit.level));
            let ranks = Retrieval::from_hits(placed, &record.evidence_turns, &record.evidence_sessions);
            let retrieval = recall.is_some().then_some(&ranks);
            for name in ["single-hop", "adversarial"] {
                let rules = category::rules(name);
                for answer in ANSWERS {
                    let case = ScoreCase {
                        gold: Some(&record),
                        rules,
                        hits: &hits,
                        retrieval,
                        answer,
                        ..ScoreCase::default()
                    };
                    scores.extend(scorer.scores(&case));
                }
            }
        }
    }
    scores
}

fn line(name: &str, scorers: &[&dyn Scorer]) -> String {
    let (mut hash, mut version) = (Sha256::new(), 0);
    for scorer in scorers {
        let scores = scores_of(*scorer);
        assert!(
            scores.iter().any(Option::is_some),
            "{} never gives a score here: add a case that it reads",
            scorer.name()
        );
        scores.iter().for_each(|score| hash.update(format!("{score:?}\n")));
        version = scorer.version();
    }
    format!("{name} v{version} {}", &hex::encode(hash.finalize())[..16])
}

/// When this fails, a score has changed: raise the scorer's version, then write down the new hash.
#[test]
fn no_score_changes_without_a_new_version() {
    let of_scorers = SCORERS.iter().map(|scorer| line(scorer.name(), &[*scorer]));
    let of_figures = retrieval::patterns().map(|(name, ..)| {
        let at = [1, 3, 10, retrieval::LARGEST_K];
        let figures =
            at.map(|k| registry::find(&name.replace("@k", &format!("@{k}"))).expect("every cut-off is there"));
        line(&name, &figures)
    });
    insta::assert_snapshot!(of_scorers.chain(of_figures).collect::<Vec<_>>().join("\n"), @r"
    locomo-f1 v1 60a680667fedd8ca
    locomo-f1-astrocyte v1 500a94ba61249f01
    exact v1 3a7b5bbffaba869f
    word-overlap v1 67a2d62531fc6c2f
    choice v2 35be2962e91e6a0a
    choice-strict v1 3bf2ec3d8af96d97
    choice-hebb v2 5eb6f64c5276f3e0
    choice-letter v1 bcc8f5dd8d79b561
    contains v1 6c109f33dc5b8551
    contains-word v1 810a36058c05d3b1
    substring v1 c0bd341bf52a69f2
    keywords v1 a565513b756a89ce
    rubric v3 cbc1ba75aa35bad6
    rubric-agent-eval v2 6c669eff7732a5ab
    rubric-amplihack v3 109fd6fcf0c68184
    assertions v1 677c6f76f744a9a0
    recall@k v1 514946d50b66c4d8
    turn-recall-any@k v1 6d827397b6b01198
    turn-recall-all@k v1 9a532ef6238c6073
    hit@k v1 6d827397b6b01198
    precision@k v2 f09d10f23ff9faf6
    precision-of-returned@k v1 810a3327446009b5
    mrr@k v1 c4ed5431cf869303
    ndcg@k v1 fce39bafe5add419
    ndcg-lme@k v1 82be3fa81928c585
    session-recall@k v1 299f92e0ff4b0e20
    session-recall-any@k v1 3cbf8956f2459781
    session-recall-all@k v1 a37305fedd478232
    session-precision@k v2 c4ad0528401082f5
    session-precision-of-returned@k v1 2607c2590e0b5b7c
    session-mrr@k v1 bfc71973d00e2336
    session-ndcg@k v1 b6a50dd2bb7b8fe5
    session-ndcg-lme@k v1 6bf212a8ec635603
    official-turn-recall-any@k v1 583ae57ef1bb0446
    official-turn-recall-all@k v1 583ae57ef1bb0446
    official-turn-ndcg-lme@k v1 d5ed8d19252c3a3f
    official-session-recall-any@k v1 88d6174e8c502bc4
    official-session-recall-all@k v1 88d6174e8c502bc4
    official-session-ndcg-lme@k v1 88d6174e8c502bc4
    ");
}
