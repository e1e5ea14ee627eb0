//! PrecisionMemBench: one small memory of beliefs with users, scopes, successors, aliases and relations, and what of it must
//! and must not surface. MIT; the files are found on this machine or downloaded.
//!
//! All cases are asked of one bank. The turns of all sessions are asked of a second one, in order, beliefs changing between
//! them: the second session depends on what the first has left, as in the published runner. Variants: `main` tells a system
//! what that runner tells it and counts as it counts, `paper` is the version of the paper, with its files and its rules,
//! `corrected` mends what no system can pass or know ([`CORRECTED`]).

pub(crate) mod harness;
pub(crate) mod schema;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use bench_proto::{assertions::Counting, dataset::Bank};

use self::{
    harness::{Asking, Harness, Pins, Rules, Told},
    schema::{Belief, Case, SessionCase},
};
use crate::{
    Dataset, DatasetError, Opening,
    broken::{broken, json},
    loaded::Loaded,
    notes::Notes,
};

pub(crate) const MANIFEST: &str = include_str!("manifest.toml");
pub(crate) const PROFILE: &str = include_str!("profile.toml");

/// Finds, checks and reads the files of a variant.
pub(crate) fn open(opening: &Opening<'_>) -> Result<Box<dyn Dataset>, DatasetError> {
    const CASES: &str = "retrieval.cases.json";
    let files = opening.files()?;
    let (rules, below) = match opening.manifest().name.as_str() {
        "precisionmembench@paper" => (PAPER, "paper/"),
        "precisionmembench@corrected" => (CORRECTED, ""),
        _ => (MAIN, ""),
    };
    let [beliefs, cases, sessions] =
        ["beliefs.seed.json", CASES, "session-retrieval.cases.json"].map(|name| format!("{below}{name}"));
    let file = |name: &str| Ok::<_, DatasetError>((files.shown(name)?.display().to_string(), files.read(name)?));
    let (beliefs, cases, sessions) = (file(&beliefs)?, file(&cases)?, file(&sessions)?);
    let later = if below.is_empty() { None } else { Some(file(CASES)?) };
    let texts = Texts {
        beliefs: named(&beliefs),
        cases: named(&cases),
        sessions: named(&sessions),
        categories: later.as_ref().map(named),
    };
    let (banks, lines) = banks(rules, &texts)?;
    let mut notes = Notes::default();
    lines.into_iter().for_each(|line| notes.say("names of beliefs that there are not", || line));
    Ok(Box::new(Loaded::new(opening, &files, banks, notes)))
}

fn named((path, content): &(String, Vec<u8>)) -> Named<'_> {
    (path, content)
}

/// The user of every case that names none, and of all sessions.
const USER: &str = "test-user";

/// Category of all turns.
const SESSIONS: &str = "session-level-noise-isolation";

/// Categories in which finding nothing is the point.
const STRUCTURAL: &[&str] = &[
    "scope-disambiguation",
    "supersession-chain-exclusion",
    "type-routing-and-open-questions",
    "budget-eviction-and-capacity",
    "cross-user-isolation",
    "ranking-stability",
    "persona-prelude-content",
];

/// As the published runner has it: a system is told no more of a belief than its first scope and, from the start, its aliases.
const MAIN: Rules = Rules {
    counting: Counting::Case,
    pins: Pins::OfScopes,
    told: Told::Aliases,
    all_scopes: false,
    routes_questions: false,
    mends_nesting: false,
};

const PAPER: Rules = Rules { counting: Counting::Paper, pins: Pins::Paper, all_scopes: true, ..MAIN };

/// What no system can pass or know is mended: relations add no open questions and nothing that no longer holds, hits of open
/// questions are left to the harness, the expectation of turn 10 that stands one level too deep is looked at, questions are put
/// for all their scopes, and a system is told type, pin, successor and end of every belief.
const CORRECTED: Rules =
    Rules { told: Told::All, all_scopes: true, routes_questions: true, mends_nesting: true, ..MAIN };

/// Far more than were published; what a question knows of all beliefs is stored with each.
const MOST_BELIEFS: usize = 1_000;
const MOST_QUESTIONS: usize = 5_000;

/// A file: its path for errors, and its bytes.
pub(crate) type Named<'a> = (&'a str, &'a [u8]);

/// What is read.
pub(crate) struct Texts<'a> {
    pub(crate) beliefs: Named<'a>,
    pub(crate) cases: Named<'a>,
    pub(crate) sessions: Named<'a>,
    /// A later version of the cases, from which those without a category have theirs.
    pub(crate) categories: Option<Named<'a>>,
}

/// The text about a user, which no file has: the published program holds one for one user. This one says the same.
fn prelude(user: &str) -> String {
    const TEXT: &str = "Wants direct answers that come without preamble, objections where a plan has problems, \
                        and drafts to edit rather than edits of their own prose.";
    if user == USER { TEXT.to_owned() } else { String::new() }
}

/// The banks of a variant, and what did not resolve.
pub(crate) fn banks(rules: Rules, texts: &Texts<'_>) -> Result<(Vec<Bank>, Vec<String>), DatasetError> {
    let beliefs: Vec<Belief> = json(texts.beliefs.0, texts.beliefs.1)?;
    let mut cases: Vec<Case> = json(texts.cases.0, texts.cases.1)?;
    let sessions: Vec<SessionCase> = json(texts.sessions.0, texts.sessions.1)?;
    let questions = cases.len() + sessions.iter().map(|session| session.turns.len()).sum::<usize>();
    for (name, count, most) in
        [(texts.beliefs.0, beliefs.len(), MOST_BELIEFS), (texts.cases.0, questions, MOST_QUESTIONS)]
    {
        if count == 0 || count > most {
            return Err(broken(name, "file", format!("holds {count} of them; it must be 1 to {most}")));
        }
    }
    if let Some((path, content)) = texts.categories {
        let later: Vec<Case> = json(path, content)?;
        let mut known: HashMap<String, Option<String>> =
            later.into_iter().map(|case| (case.case_id, case.category)).collect();
        for case in &mut cases {
            case.category = case.category.take().or_else(|| known.remove(&case.case_id).flatten());
        }
    }
    let (of_cases, mut notes) = bank_of_cases(rules, texts, beliefs.clone(), &cases)?;
    let (of_sessions, further) = bank_of_sessions(rules, texts, beliefs, &sessions)?;
    notes.extend(further);
    notes.sort();
    notes.dedup();
    Ok((vec![of_cases, of_sessions], notes))
}

fn bank_of_cases(
    rules: Rules,
    texts: &Texts<'_>,
    beliefs: Vec<Belief>,
    cases: &[Case],
) -> Result<(Bank, Vec<String>), DatasetError> {
    let mut harness = Harness::new("cases", rules, &prelude);
    harness.seed(beliefs).map_err(|problem| broken(texts.beliefs.0, "file", problem))?;
    for case in cases {
        let category = case
            .category
            .as_deref()
            .map(slug)
            .ok_or_else(|| broken(texts.cases.0, format!("case {}", case.case_id), "has no category"))?;
        harness.ask(Asking {
            question_id: case.case_id.clone(),
            structural: STRUCTURAL.contains(&category.as_str()),
            category,
            user: case.user_id.as_deref().unwrap_or(USER),
            scopes: &case.scope,
            query: &case.query,
            budget: case.budget.unwrap_or_default(),
            expect: &case.expect,
            turn: None,
        });
    }
    Ok(harness.finish())
}

fn bank_of_sessions(
    rules: Rules,
    texts: &Texts<'_>,
    beliefs: Vec<Belief>,
    sessions: &[SessionCase],
) -> Result<(Bank, Vec<String>), DatasetError> {
    let told = if rules.told == Told::Aliases { Told::Kinds } else { rules.told };
    let mut harness = Harness::new("sessions", Rules { told, ..rules }, &prelude);
    harness.seed(beliefs).map_err(|problem| broken(texts.beliefs.0, "file", problem))?;
    // (topics, expected beliefs) of the turns so far
    let mut before: Vec<(&[String], Vec<&String>)> = Vec::new();
    for session in sessions {
        for turn in &session.turns {
            let question_id = format!("{}:{}", session.case_id, turn.turn_index);
            let list = &turn.expect.relevant_beliefs;
            let expected: Vec<&String> = list.should_only_include.iter().flatten().chain(&list.must_include).collect();
            let elsewhere = before.iter().filter(|(topics, _)| topics.iter().all(|topic| !turn.topics.contains(topic)));
            let drift = elsewhere.flat_map(|(_, beliefs)| beliefs).filter(|name| !expected.contains(name));
            harness.ask(Asking {
                question_id: question_id.clone(),
                category: SESSIONS.to_owned(),
                user: USER,
                scopes: &turn.scope,
                query: &turn.user_message,
                budget: schema::Budget::default(),
                expect: &turn.expect,
                structural: false,
                turn: Some((&turn.label, drift.map(|name| (*name).clone()).collect())),
            });
            before.push((&turn.topics, expected));
            let changed = [
                turn.create_belief_at_turn.as_ref().map(|belief| harness.create(belief.clone())),
                turn.update_belief_at_turn
                    .as_ref()
                    .map(|update| harness.enrich(&update.belief_id, &update.add_aliases)),
            ];
            for change in changed.into_iter().flatten() {
                change.map_err(|problem| broken(texts.sessions.0, question_id.as_str(), problem))?;
            }
        }
    }
    Ok(harness.finish())
}

/// `Type routing and open questions` → `type-routing-and-open-questions`.
fn slug(name: &str) -> String {
    name.to_lowercase().replace(' ', "-")
}
