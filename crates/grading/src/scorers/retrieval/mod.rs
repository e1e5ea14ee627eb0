//! Retrieval as a score: figures at a cut-off k, from the ranks of a question's evidence among its hits.
//!
//! A scorer's name is a figure with its cut-off, `recall@10`. Figures are about turns unless their name says sessions. A
//! question has none where its dataset names no evidence of that level, where nothing was recalled, and at the level of turns
//! where the hits are known to be sessions only. Figures whose name begins with `official` count what the authors of a
//! dataset count as evidence, where its loader says so (LongMemEval). The formulas are [`bench_proto::retrieval`]'s; how others count is in
//! [`longmemeval`], [`membench`], [`repeats`] and [`hebb`].

pub mod hebb;
pub mod longmemeval;
pub mod membench;
pub mod repeats;

use std::sync::LazyLock;

use bench_proto::{
    dataset::GoldRecord,
    retrieval::{RetrievalMetrics, ndcg_lme},
    step::{RankHits, Retrieval},
};

use self::Level::{OfficialSession, OfficialTurn};
use super::{Origin, Reads, ScoreCase, Scorer};

/// The largest cut-off.
pub const LARGEST_K: u32 = 50;

/// What of a question's evidence is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Level {
    Turn,
    Session,
    /// What the dataset's authors count as evidence, which its loader keeps in `hidden` beside our evidence.
    OfficialTurn,
    OfficialSession,
}

/// Where a loader keeps the turns and the sessions that the authors of a dataset count.
const OFFICIAL_TURNS: &str = "official_turns";
const OFFICIAL_SESSIONS: &str = "official_sessions";

/// A figure without its cut-off.
struct Figure {
    name: &'static str,
    description: &'static str,
    level: Level,
    at: fn(&RankHits, u32) -> Option<f64>,
    origin: Origin,
    version: u32,
}

/// The plain formulas, which two harnesses compute alike.
const PLAIN: Origin =
    Origin { source: "ours (bench_proto::retrieval)", vectors: &["ranked_metrics", "hebb_ranked_metrics"] };
/// All evidence, or none of it, by LongMemEval's program.
const ANY_ALL: Origin =
    Origin { source: "LongMemEval, src/retrieval/eval_utils.py", vectors: &["longmemeval_retrieval"] };
/// As MemBench is counted by the Hebb harness.
const HIT: Origin = Origin { source: "hebb-mind, eval/benchmarks/membench_bench.py", vectors: &["hebb_membench_hit"] };
/// Sessions as the Hebb harness counts them.
const SESSIONS: Origin = Origin {
    source: "ours (bench_proto::retrieval)",
    vectors: &["ranked_metrics", "hebb_ranked_metrics", "hebb_longmemeval_session_metrics"],
};

impl Figure {
    const fn turn(name: &'static str, at: fn(&RankHits, u32) -> Option<f64>, description: &'static str) -> Self {
        Self { name, description, level: Level::Turn, at, origin: PLAIN, version: 1 }
    }

    const fn session(name: &'static str, at: fn(&RankHits, u32) -> Option<f64>, description: &'static str) -> Self {
        Self { name, description, level: Level::Session, at, origin: SESSIONS, version: 1 }
    }

    const fn official(
        name: &'static str,
        level: Level,
        at: fn(&RankHits, u32) -> Option<f64>,
        description: &'static str,
    ) -> Self {
        Self { name, description, level, at, origin: ANY_ALL, version: 1 }
    }

    const fn with_origin(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    /// Of another version: it was computed otherwise before.
    const fn since(self, version: u32) -> Self {
        Self { version, ..self }
    }
}

/// All figures: one line each.
static FIGURES: &[Figure] = &[
    Figure::turn("recall", recall, "share of the evidence turns among the first k hits"),
    Figure::turn("turn-recall-any", recall_any, "1 when an evidence turn is among the first k hits")
        .with_origin(ANY_ALL),
    Figure::turn("turn-recall-all", recall_all, "1 when all evidence turns are among the first k hits")
        .with_origin(ANY_ALL),
    Figure::turn("hit", recall_any, "the same as turn-recall-any@k, by MemBench's name").with_origin(HIT),
    Figure::turn("precision", precision, "evidence turns among the first k hits, divided by k").since(2),
    Figure::turn(
        "precision-of-returned",
        of_returned,
        "evidence turns among the first k hits, divided by their number",
    ),
    Figure::turn("mrr", mrr, "1 / rank of the first evidence turn, 0 behind k"),
    Figure::turn("ndcg", ndcg, "gain 1/log2(rank + 1) of evidence turns, of the best possible"),
    Figure::turn("ndcg-lme", ndcg_lme, "the same by LongMemEval's program: ranks 1 and 2 weigh the same")
        .with_origin(ANY_ALL),
    Figure::session("session-recall", recall, "share of the evidence sessions among the first k sessions"),
    Figure::session("session-recall-any", recall_any, "1 when an evidence session is among the first k sessions")
        .with_origin(ANY_ALL),
    Figure::session("session-recall-all", recall_all, "1 when all evidence sessions are among the first k sessions")
        .with_origin(ANY_ALL),
    Figure::session("session-precision", precision, "evidence sessions among the first k sessions, divided by k")
        .since(2),
    Figure::session(
        "session-precision-of-returned",
        of_returned,
        "evidence sessions among the first k sessions, divided by their number",
    ),
    Figure::session("session-mrr", mrr, "1 / rank of the first evidence session, 0 behind k"),
    Figure::session("session-ndcg", ndcg, "gain 1/log2(rank + 1) of evidence sessions, of the best possible"),
    Figure::session("session-ndcg-lme", ndcg_lme, "the same by LongMemEval's program: ranks 1 and 2 weigh the same")
        .with_origin(ANY_ALL),
    Figure::official("official-turn-recall-any", OfficialTurn, recall_any, "turn-recall-any@k of labelled user turns"),
    Figure::official("official-turn-recall-all", OfficialTurn, recall_all, "turn-recall-all@k of labelled user turns"),
    Figure::official("official-turn-ndcg-lme", OfficialTurn, ndcg_lme, "ndcg-lme@k of labelled user turns"),
    Figure::official(
        "official-session-recall-any",
        OfficialSession,
        recall_any,
        "session-recall-any@k of sessions with a labelled user turn, without abstentions",
    ),
    Figure::official(
        "official-session-recall-all",
        OfficialSession,
        recall_all,
        "session-recall-all@k of sessions with a labelled user turn, without abstentions",
    ),
    Figure::official(
        "official-session-ndcg-lme",
        OfficialSession,
        ndcg_lme,
        "session-ndcg-lme@k of sessions with a labelled user turn, without abstentions",
    ),
];

/// Ranks of what the authors of a dataset count among a question's hits. None for questions that they leave out: abstentions,
/// and those without a session of theirs.
fn official(case: &ScoreCase<'_>, record: &GoldRecord) -> Option<Retrieval> {
    case.retrieval?;
    let of = |key: &str| -> Option<Vec<String>> {
        let ids = record.hidden.get(key)?.as_array()?.iter();
        Some(ids.filter_map(|id| id.as_str().map(str::to_owned)).collect())
    };
    let (turns, sessions) = (of(OFFICIAL_TURNS)?, of(OFFICIAL_SESSIONS)?);
    if record.gold.is_unanswerable() || sessions.is_empty() {
        return None;
    }
    let hits = case.hits.iter().map(|hit| (hit.id.as_str(), hit.session_id.as_str(), hit.level));
    Some(Retrieval::from_hits(hits, &turns, &sessions))
}

fn recall(hits: &RankHits, k: u32) -> Option<f64> {
    RetrievalMetrics::at(hits, k).map(|metrics| metrics.recall)
}

fn recall_any(hits: &RankHits, k: u32) -> Option<f64> {
    RetrievalMetrics::at(hits, k).map(|metrics| metrics.recall_any)
}

fn recall_all(hits: &RankHits, k: u32) -> Option<f64> {
    RetrievalMetrics::at(hits, k).map(|metrics| metrics.recall_all)
}

fn precision(hits: &RankHits, k: u32) -> Option<f64> {
    RetrievalMetrics::at(hits, k).map(|metrics| metrics.precision)
}

fn of_returned(hits: &RankHits, k: u32) -> Option<f64> {
    RetrievalMetrics::at(hits, k).map(|metrics| metrics.precision_of_returned)
}

fn mrr(hits: &RankHits, k: u32) -> Option<f64> {
    RetrievalMetrics::at(hits, k).map(|metrics| metrics.mrr)
}

fn ndcg(hits: &RankHits, k: u32) -> Option<f64> {
    RetrievalMetrics::at(hits, k).map(|metrics| metrics.ndcg)
}

/// A figure at a cut-off.
struct AtK {
    name: String,
    figure: &'static Figure,
    k: u32,
}

impl Scorer for AtK {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        self.figure.description
    }

    fn version(&self) -> u32 {
        self.figure.version
    }

    fn origin(&self) -> Origin {
        self.figure.origin
    }

    fn reads(&self) -> Reads {
        match self.figure.level {
            Level::Turn | Level::Session => Reads::Ranks,
            OfficialTurn | OfficialSession => Reads::Hits,
        }
    }

    fn least_k(&self) -> u32 {
        self.k
    }

    fn score(&self, case: &ScoreCase<'_>) -> Option<f64> {
        // a line of `score` has ranks and no record: it says what is counted
        let official = match case.gold {
            Some(record) if self.reads() == Reads::Hits => Some(official(case, record)?),
            _ => None,
        };
        let Retrieval { turn, session, .. } = official.as_ref().or(case.retrieval)?;
        let hits = match self.figure.level {
            Level::Turn | OfficialTurn => turn,
            Level::Session | OfficialSession => session,
        };
        (self.figure.at)(hits, self.k)
    }
}

/// All figures of retrieval, each for every k from 1 on.
static ALL: LazyLock<Vec<AtK>> = LazyLock::new(|| {
    let at =
        |figure: &'static Figure| (1..=LARGEST_K).map(move |k| AtK { name: format!("{}@{k}", figure.name), figure, k });
    FIGURES.iter().flat_map(at).collect()
});

/// The scorer of a name such as `recall@10`. `None` for what has another form, an error in words for a figure or a cut-off that
/// does not exist.
pub(super) fn find(name: &str) -> Option<Result<&'static dyn Scorer, String>> {
    let Some((figure, k)) = name.split_once('@') else {
        let figure = FIGURES.iter().find(|figure| figure.name == name)?;
        return Some(Err(format!("it needs a cut-off, such as '{}@10'", figure.name)));
    };
    let Some(at) = FIGURES.iter().position(|known| known.name == figure) else {
        let nearest = bench_proto::nearest::nearest(figure, FIGURES.iter().map(|known| known.name));
        let with_k: Vec<String> = nearest.into_iter().map(|figure| format!("{figure}@{k}")).collect();
        let with_k: Vec<&str> = with_k.iter().map(String::as_str).collect();
        return Some(Err(bench_proto::nearest::did_you_mean(&with_k).unwrap_or_default()));
    };
    let k =
        k.parse::<u32>().ok().filter(|k| (1..=LARGEST_K).contains(k) && !name.contains("@0") && !name.contains("@+"));
    let Some(k) = k else { return Some(Err(format!("k is a number from 1 to {LARGEST_K}"))) };
    let scorer: &'static dyn Scorer = &ALL[at * LARGEST_K as usize + k as usize - 1];
    Some(Ok(scorer))
}

/// Names with `k` in place of the cut-off, what they mean and whose they are.
pub(super) fn patterns() -> impl Iterator<Item = (String, &'static str, Origin)> {
    FIGURES.iter().map(|figure| (format!("{}@k", figure.name), figure.description, figure.origin))
}

/// What heads runs that score nothing but recalls, where their dataset names no figure: shares of the evidence among the first
/// `k`, sessions first, because every system's hits tell these.
#[must_use]
pub fn defaults(k: u32) -> Vec<String> {
    let k = k.clamp(1, LARGEST_K);
    ["session-recall", "recall", "ndcg"].map(|figure| format!("{figure}@{k}")).to_vec()
}

/// The chance that at least one of `drawn` different memories, drawn blindly from `pool`, is one of `relevant` memories in it:
/// 1 − C(pool − relevant, drawn) / C(pool, drawn).
#[must_use]
pub fn chance_of_a_hit(pool: u64, relevant: u64, drawn: u64) -> f64 {
    let others = pool.saturating_sub(relevant);
    let missed = (0..drawn.min(pool)).map(|i| others.saturating_sub(i) as f64 / (pool - i) as f64);
    1.0 - missed.product::<f64>()
}

#[cfg(test)]
mod tests {
    use bench_proto::{
        dataset::Gold,
        step::{HitLevel, RetrievedHit},
    };
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::scorers::registry;

    fn score(name: &str, retrieval: &Retrieval) -> Option<f64> {
        let scorer = registry::find(name).expect(name);
        scorer.score(&ScoreCase { retrieval: Some(retrieval), ..ScoreCase::default() })
    }

    #[test]
    fn figures_at_both_levels() {
        let hits = [("D1:1", "D1"), ("D2:4", "D2"), ("D2:5", "D2"), ("D3:1", "D3")];
        let hits = hits.iter().map(|(id, session)| (*id, *session, Some(HitLevel::Turn)));
        let turns = ["D2:5", "D3:1", "D9:9"].map(str::to_owned);
        let sessions = ["D2", "D3", "D9"].map(str::to_owned);
        let retrieval = Retrieval::from_hits(hits, &turns, &sessions);
        for (name, expected) in [
            ("recall@2", 0.0),
            ("recall@3", 1.0 / 3.0),
            ("recall@50", 2.0 / 3.0),
            ("turn-recall-any@3", 1.0),
            ("hit@2", 0.0),
            ("turn-recall-all@50", 0.0),
            ("precision@4", 0.5),
            ("precision@8", 0.25),
            ("precision-of-returned@8", 0.5),
            ("mrr@4", 1.0 / 3.0),
            ("session-recall@2", 1.0 / 3.0),
            ("session-recall@3", 2.0 / 3.0),
            ("session-recall-any@1", 0.0),
            ("session-recall-any@2", 1.0),
            ("session-recall-all@3", 0.0),
            ("session-precision@2", 0.5),
            ("session-mrr@3", 0.5),
            // ranks 2 and 3 of sessions; the ideal list has three
            ("session-ndcg-lme@3", (1.0 + 1.0 / 3_f64.log2()) / (2.0 + 1.0 / 3_f64.log2())),
        ] {
            assert!((score(name, &retrieval).expect(name) - expected).abs() < 1e-12, "{name}");
        }
    }

    /// Of two sessions with labelled turns the authors count the one whose turn is the user's; abstentions are no questions of theirs.
    #[test]
    fn official_figures_count_what_the_authors_count() {
        let hit = |id: &str, session: &str| RetrievedHit {
            id: id.to_owned(),
            session_id: session.to_owned(),
            level: Some(HitLevel::Turn),
            ..RetrievedHit::default()
        };
        let hits = [hit("S2:2", "S2"), hit("S7:1", "S7"), hit("S4:3", "S4")];
        let mut record = GoldRecord {
            gold: Gold::Text("tea".to_owned()),
            evidence_turns: ["S2:2", "S4:3"].map(str::to_owned).to_vec(),
            evidence_sessions: ["S2", "S4"].map(str::to_owned).to_vec(),
            hidden: [("official_turns", json!(["S4:3"])), ("official_sessions", json!(["S4"]))]
                .map(|(key, ids)| (key.to_owned(), ids))
                .into(),
            ..GoldRecord::default()
        };
        let score = |name: &str, record: &GoldRecord, asked: bool| {
            let placed = hits.iter().map(|hit| (hit.id.as_str(), hit.session_id.as_str(), hit.level));
            let ranks = Retrieval::from_hits(placed, &record.evidence_turns, &record.evidence_sessions);
            let retrieval = asked.then_some(&ranks);
            let case = ScoreCase { gold: Some(record), hits: &hits, retrieval, ..ScoreCase::default() };
            registry::find(name).expect(name).score(&case)
        };
        assert_eq!(score("session-recall-any@1", &record, true), Some(1.0));
        for (name, expected) in [
            ("official-session-recall-any@2", 0.0),
            ("official-session-recall-any@3", 1.0),
            ("official-session-recall-all@3", 1.0),
            ("official-session-ndcg-lme@3", 1.0 / 3_f64.log2()),
            ("official-turn-recall-any@3", 1.0),
            ("official-turn-recall-all@2", 0.0),
            ("official-turn-ndcg-lme@3", 1.0 / 3_f64.log2()),
        ] {
            assert_eq!(score(name, &record, true), Some(expected), "{name}");
            assert_eq!(score(name, &record, false), None, "{name}: nothing was recalled");
        }
        let any = "official-session-recall-any@3";
        let abstention = GoldRecord { gold: Gold::Abstain, ..record.clone() };
        assert_eq!(score(any, &abstention, true), None, "an abstention");
        record.hidden.insert(OFFICIAL_SESSIONS.to_owned(), json!([]));
        assert_eq!(score(any, &record, true), None, "no session with a labelled turn of the user");
        record.hidden.clear();
        assert_eq!(score(any, &record, true), None, "a dataset whose authors count nothing of their own");
    }

    #[test]
    fn p45_hits_that_are_sessions_have_no_figure_of_turns() {
        let hits = [("hit-1", "D1", Some(HitLevel::Session))];
        let retrieval = Retrieval::from_hits(hits.into_iter(), &["D1:3".to_owned()], &["D1".to_owned()]);
        assert_eq!((score("recall@5", &retrieval), score("session-recall@5", &retrieval)), (None, Some(1.0)));
        let unlabelled = Retrieval::from_hits(hits.into_iter(), &[], &[]);
        assert_eq!(score("session-recall@5", &unlabelled), None);
        let scorer = registry::find("hit@5").expect("is there");
        assert_eq!(scorer.score(&ScoreCase::default()), None, "nothing was recalled");
    }

    #[test]
    fn names_are_parsed_and_the_nearest_is_told() {
        for figure in FIGURES {
            for k in [1, 10, LARGEST_K] {
                let name = format!("{}@{k}", figure.name);
                let scorer = registry::find(&name).expect("is there");
                let reads = if name.starts_with("official-") { Reads::Hits } else { Reads::Ranks };
                assert_eq!((scorer.name(), scorer.least_k(), scorer.reads()), (name.as_str(), k, reads));
            }
        }
        let message = |name: &str| registry::find(name).err().map(|error| error.to_string()).unwrap_or_default();
        insta::assert_snapshot!(
            ["recal@10", "session_recall-any@5", "recall@51", "recall@0", "recall@05", "recall@", "nonsense@5", "recall"]
                .map(message)
                .join("\n"),
            @r"
            unknown scorer 'recal@10' (did you mean 'recall@10'?); `bench-coord score --list` shows all
            unknown scorer 'session_recall-any@5' (did you mean 'session-recall-any@5' or 'session-recall-all@5' or 'session-recall@5'?); `bench-coord score --list` shows all
            unknown scorer 'recall@51' (k is a number from 1 to 50); `bench-coord score --list` shows all
            unknown scorer 'recall@0' (k is a number from 1 to 50); `bench-coord score --list` shows all
            unknown scorer 'recall@05' (k is a number from 1 to 50); `bench-coord score --list` shows all
            unknown scorer 'recall@' (k is a number from 1 to 50); `bench-coord score --list` shows all
            unknown scorer 'nonsense@5'; `bench-coord score --list` shows all
            unknown scorer 'recall' (it needs a cut-off, such as 'recall@10'); `bench-coord score --list` shows all
            "
        );
    }

    proptest! {
        #[test]
        fn figures_are_bounded_and_no_name_panics(
            ranked in prop::collection::vec(0_u8..60, 0..70),
            gold in prop::collection::vec(0_u8..60, 0..10),
            name in "\\PC{0,12}@\\PC{0,4}",
        ) {
            let ids = |of: &[u8]| of.iter().map(u8::to_string).collect::<Vec<_>>();
            let (ranked, gold) = (ids(&ranked), ids(&gold));
            let hits = RankHits::find(ranked.iter().map(String::as_str), gold.iter().map(String::as_str));
            let retrieval = Retrieval { turn: hits.clone(), session: hits, ..Retrieval::default() };
            for scorer in ALL.iter() {
                let score = scorer.score(&ScoreCase { retrieval: Some(&retrieval), ..ScoreCase::default() });
                prop_assert_eq!(score.is_none(), gold.is_empty());
                prop_assert!(score.is_none_or(|score| (0.0..=1.0 + 1e-12).contains(&score)), "{}: {:?}", scorer.name, score);
            }
            let _ = registry::find(&name);
        }

        #[test]
        fn the_best_list_has_the_best_gain(gold in 1_u32..60, k in 1_u32..=LARGEST_K) {
            let hits = RankHits { gold, ranked: 60, ranks: (1..=gold).collect() };
            prop_assert!((ndcg_lme(&hits, k).expect("there is gold") - 1.0).abs() < 1e-12);
        }

        #[test]
        fn chance_is_that_of_drawing(pool in 1_u64..200, relevant in 0_u64..200, drawn in 0_u64..250) {
            let relevant = relevant.min(pool);
            let chance = chance_of_a_hit(pool, relevant, drawn);
            prop_assert!((0.0..=1.0).contains(&chance), "{chance}");
            prop_assert_eq!(chance == 0.0, relevant == 0 || drawn == 0);
            if drawn == 1 {
                prop_assert!((chance - relevant as f64 / pool as f64).abs() < 1e-12);
            }
            if relevant > 0 && drawn + relevant > pool {
                prop_assert_eq!(chance, 1.0);
            }
        }
    }
}
