//! What a recall found, and at which ranks the evidence stands in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::is_none_u32;

/// Ranks of gold evidence among the hits, at both levels; all retrieval metrics at any k follow from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retrieval {
    /// Level of turns.
    pub turn: RankHits,
    /// Level of sessions (hits reduced to their first hit per session).
    pub session: RankHits,
    /// Gold turns that were never retained before the question was asked (cut sessions): nobody could have found them.
    #[serde(skip_serializing_if = "is_none_u32")]
    pub unretained: u32,
    /// True when an empty recall is the right one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub nothing_expected: bool,
    /// Hits that the question's filter does not admit; absent where it has none, and where no hit is known by its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outside: Option<u32>,
}

impl Retrieval {
    /// The ranks of gold evidence among `hits`: (id, session, level) each, best first.
    ///
    /// Where hits came and none of them is known to be a turn, nothing can be said at the level of turns: it has no ground truth.
    #[must_use]
    pub fn from_hits<'a>(
        hits: impl Iterator<Item = (&'a str, &'a str, Option<HitLevel>)> + Clone,
        evidence_turns: &'a [String],
        evidence_sessions: &'a [String],
    ) -> Self {
        let is_turn = |level: Option<HitLevel>| matches!(level, None | Some(HitLevel::Turn));
        let no_turns = hits.clone().next().is_some() && !hits.clone().any(|(_, _, level)| is_turn(level));
        let turns = if no_turns { &[][..] } else { evidence_turns };
        Self {
            turn: RankHits::find(hits.clone().map(|(id, ..)| id), turns.iter().map(String::as_str)),
            session: RankHits::find(hits.map(|(_, session, _)| session), evidence_sessions.iter().map(String::as_str)),
            unretained: 0,
            nothing_expected: false,
            outside: None,
        }
    }
}

/// Ranks of gold ids in a deduplicated ranked list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RankHits {
    /// Number of distinct gold ids; 0 means "no ground truth".
    pub gold: u32,
    /// Length of the deduplicated ranked list.
    pub ranked: u32,
    /// 1-based ranks at which gold ids stand, ascending.
    pub ranks: Vec<u32>,
}

impl RankHits {
    /// Finds the ranks of `gold` in `ranked`; both are deduplicated first, order kept.
    #[must_use]
    pub fn find<'a>(ranked: impl IntoIterator<Item = &'a str>, gold: impl IntoIterator<Item = &'a str>) -> Self {
        let gold: std::collections::HashSet<&str> = gold.into_iter().collect();
        let mut seen = std::collections::HashSet::new();
        let mut hits = Self { gold: gold.len() as u32, ranked: 0, ranks: Vec::new() };
        for id in ranked {
            if seen.insert(id) {
                hits.ranked += 1;
                if gold.contains(id) {
                    hits.ranks.push(hits.ranked);
                }
            }
        }
        hits
    }
}

/// One hit of a recall.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RetrievedHit {
    /// Id of the turn or memory.
    pub id: String,
    /// The dataset's id of the session that it comes from.
    pub session_id: String,
    /// The system's score, when it gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The text that is handed to the answerer.
    pub text: String,
    /// How it is known what of the dataset it is. Absent where it is not known, where a built-in system made it from the stored
    /// turn itself, and in what was stored before this was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed_by: Option<PlacedBy>,
    /// How exactly it is known; absent as above, and then taken for a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<HitLevel>,
    /// What else the system said of it, by the names of its adapter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, serde_json::Value>,
}

/// How a hit was found again among what was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlacedBy {
    /// By an id that the system handed back, or that stood before its text.
    Id,
    /// By its text: it is that of a stored item, letter by letter.
    Text,
}

/// What of the dataset a hit is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HitLevel {
    /// A turn, or a single memory.
    Turn,
    /// Something of a session.
    Session,
    /// Neither: reports say `other`.
    Unknown,
}
