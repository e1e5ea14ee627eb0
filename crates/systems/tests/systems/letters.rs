//! The demo answerer over `oracle` on questions of multiple choice: every rule for choices reads what it answers as one letter, and
//! where the evidence is named it is right more often than by chance.

use std::collections::BTreeMap;

use bench_grading::scorers::{ScoreCase, registry as scorers};
use bench_models::extractive;
use bench_proto::dataset::{Gold, GoldRecord};
use bench_systems::{BuildContext, RecallQuery, SystemSettings, registry};

use super::at_hand;

/// Banks of a dataset whose questions are asked.
const BANKS: usize = 12;

#[tokio::test]
async fn the_demo_answerer_gives_letters() {
    let oracle = registry::build("oracle", &SystemSettings::new(), &BuildContext::default()).expect("builds");
    let rules = || scorers::SCORERS.iter().filter(|scorer| scorer.name().starts_with("choice"));
    assert_eq!(rules().count(), 4);
    let mut means = BTreeMap::new();
    for dataset in at_hand::all() {
        let headline = scorers::find(&dataset.manifest().scorers[0]).expect("a scorer");
        let (mut asked, mut right) = (0.0, 0.0);
        for number in 0..dataset.bank_count().min(BANKS) {
            let bank = dataset.bank(number).expect("a bank");
            let place = at_hand::place(&bank, number);
            let of_choices = bank.questions.iter().zip(&bank.gold).filter(|(question, _)| !question.choices.is_empty());
            for (question, gold) in of_choices {
                let query = RecallQuery::from_question(question, 10, bank.content.entries.len());
                let query = RecallQuery { evidence: Some(&gold.evidence_turns), ..query };
                let hits = oracle.recall(&place, &query).await.expect("recalls").hits;
                let answer = extractive::extract(&question.text, &hits, &question.choices).answer;
                let case =
                    ScoreCase { answer: Some(&answer), ..ScoreCase::unanswered(dataset.profile(), question, gold) };
                let itself = GoldRecord { gold: Gold::Choice(answer.clone()), ..gold.clone() };
                for rule in rules() {
                    let read = rule.score(&ScoreCase { gold: Some(&itself), ..case });
                    assert_eq!(read, Some(1.0), "{} reads {answer} as a letter", rule.name());
                }
                asked += 1.0;
                right += headline.score(&case).unwrap_or_default();
            }
        }
        if asked > 0.0 {
            means.insert(dataset.manifest().name.clone(), right / asked);
        }
    }
    // one of four is right by chance
    for name in ["membench@steps-from-0", "membench@steps-from-1"] {
        assert!(means[name] > 0.75, "{name}: {means:?}");
    }
    assert!(["lifebench@en", "personamem@32k"].iter().all(|name| means.contains_key(*name)), "{means:?}");
}
