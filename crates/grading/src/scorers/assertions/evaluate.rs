//! A question's assertions over the context that is put together of a system's hits: what fails, and the figures.
//!
//! The rules are those of the PrecisionMemBench runners: pinned facts take their places first, hits that are shown anyway,
//! unknown or repeated are dropped, the participants of relations are added behind the hits, and what is left is cut to the
//! places that are free.

use std::{collections::HashSet, fmt};

use bench_proto::assertions::{Assertions, Beside, Counting};

/// What came of a question's assertions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evaluation {
    /// What was found, best first.
    pub relevant: Vec<String>,
    /// The pinned facts that had a place.
    pub pinned: Vec<String>,
    /// The open questions that had a place.
    pub questions: Vec<String>,
    /// What surfaced of the noise.
    pub noise: Vec<String>,
    /// What does not hold; none: the question has passed.
    pub failures: Vec<Failure>,
    /// Share of what was found that was expected (see [`Counting`]); above 1 where pinned facts count as found.
    pub precision: Option<f64>,
    /// Share of what was expected that was found; none where nothing is expected.
    pub recall: Option<f64>,
    /// Share of the facts that must be pinned and are; none where none must be.
    pub pinned_coverage: Option<f64>,
    /// Drift of a turn; none of other questions.
    pub drift: Option<Drift>,
}

/// How far a session drifted into other topics: three definitions of the same word, lower being better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Noise among all that was found or pinned; 0 where that is nothing. The rule of the paper and of Tenure's own runner.
    pub noise: f64,
    /// 1 − precision, and 0 where there is no precision. The rule by which other systems' figures were published; below 0 where
    /// precision exceeds 1.
    pub imprecision: f64,
    /// Share of what was found that belongs to the topics the session drifted through; none where nothing was found. The rule
    /// that was only stated.
    pub topics: Option<f64>,
}

/// How a question came to pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassType {
    /// Something that was expected was found.
    Active,
    /// Nothing was found, in a question about what is left out by design.
    Structural,
    /// Nothing was found, in any other question.
    Trivial,
}

/// An assertion that does not hold, with the memory or the text that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Found, and not among exactly these.
    Unexpected(String),
    /// Among exactly these, and not found.
    Missing(String),
    /// Must be found or pinned.
    NotIncluded(String),
    /// Must be neither found nor pinned.
    Forbidden(String),
    /// Should be found or pinned.
    NotSurfaced(String),
    /// More were found than may be.
    TooMany {
        /// Number of things that were found.
        found: usize,
        /// Largest number that is allowed.
        most: u32,
    },
    /// Fewer were found than must be.
    TooFew {
        /// Number of things that were found.
        found: usize,
        /// Smallest number that is wanted.
        least: u32,
    },
    /// One of an ordered pair was not found.
    Unranked(String),
    /// The first of a pair came after the second.
    OutOfOrder {
        /// Should come first.
        first: String,
        /// Should come later.
        later: String,
    },
    /// Must be pinned.
    NotPinned(String),
    /// Must not be pinned.
    Pinned(String),
    /// Must be an open question.
    NotAsked(String),
    /// Must not be an open question.
    Asked(String),
    /// A text about the user is missing.
    NoPrelude,
    /// There is a text about the user where there must be none.
    Prelude,
    /// The text about the user must contain this.
    PreludeLacks(String),
    /// It must not contain this.
    PreludeContains(String),
    /// Noise that surfaced.
    Noise(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unexpected(id) => write!(f, "{id} was found and is not expected"),
            Self::Missing(id) => write!(f, "{id} is expected and was not found"),
            Self::NotIncluded(id) => write!(f, "{id} must surface and did not"),
            Self::Forbidden(id) => write!(f, "{id} must not surface and did"),
            Self::NotSurfaced(id) => write!(f, "{id} should surface and did not"),
            Self::TooMany { found, most } => write!(f, "{found} were found, at most {most} may be"),
            Self::TooFew { found, least } => write!(f, "{found} were found, at least {least} must be"),
            Self::Unranked(id) => write!(f, "{id} has a rank to keep and was not found"),
            Self::OutOfOrder { first, later } => write!(f, "{first} must come before {later} and did not"),
            Self::NotPinned(id) => write!(f, "{id} must be pinned and is not"),
            Self::Pinned(id) => write!(f, "{id} must not be pinned and is"),
            Self::NotAsked(id) => write!(f, "{id} must be an open question and is not"),
            Self::Asked(id) => write!(f, "{id} must not be an open question and is"),
            Self::NoPrelude => write!(f, "there is no text about the user"),
            Self::Prelude => write!(f, "there is a text about the user"),
            Self::PreludeLacks(text) => write!(f, "the text about the user lacks {text:?}"),
            Self::PreludeContains(text) => write!(f, "the text about the user contains {text:?}"),
            Self::Noise(id) => write!(f, "{id} is noise and surfaced"),
        }
    }
}

impl Evaluation {
    /// Whether every assertion holds.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// How it passed, if it did.
    #[must_use]
    pub fn pass_type(&self, structural: bool) -> Option<PassType> {
        let pass_type = match self.precision {
            Some(precision) if precision > 0.0 => PassType::Active,
            _ if structural => PassType::Structural,
            _ => PassType::Trivial,
        };
        self.passed().then_some(pass_type)
    }
}

/// Puts the context together of a system's hits, best first, and looks what of the assertions holds.
#[must_use]
pub fn evaluate<'a>(assertions: &'a Assertions, hits: impl IntoIterator<Item = &'a str>) -> Evaluation {
    let beside = &assertions.beside;
    let places = beside.max_memories as usize;
    let pinned = first(&beside.pinned, places);
    let relevant = relevant(beside, hits, places - pinned.len());
    let questions = first(&beside.questions, beside.max_questions as usize);
    let mut context = Evaluation { relevant, pinned, questions, ..Evaluation::default() };
    context.noise = assertions.must_not_surface.iter().filter(|id| context.surfaced(id)).cloned().collect();
    context.failures = failures(assertions, &context);

    let expected = assertions.expected();
    let counts_as_found = |id: &&&str| match assertions.counting {
        Counting::Case | Counting::Paper => context.found(id),
        Counting::Turn => context.surfaced(id),
    };
    let found = expected.iter().filter(counts_as_found).count();
    context.precision = match assertions.counting {
        Counting::Case if context.relevant.is_empty() && !expected.is_empty() => Some(0.0),
        _ => share(found, context.relevant.len()),
    };
    context.recall = share(found, expected.len());
    let must_be_pinned: HashSet<&String> = assertions.pinned.must_include.iter().collect();
    let are_pinned = must_be_pinned.iter().filter(|id| context.pinned.contains(id)).count();
    context.pinned_coverage = share(are_pinned, must_be_pinned.len());
    if assertions.counting == Counting::Turn {
        let of_drift = context.relevant.iter().filter(|id| beside.drift.contains(id)).count();
        context.drift = Some(Drift {
            noise: share(context.noise.len(), context.relevant.len() + context.pinned.len()).unwrap_or(0.0),
            imprecision: context.precision.map_or(0.0, |precision| 1.0 - precision),
            topics: share(of_drift, context.relevant.len()),
        });
    }
    context
}

impl Evaluation {
    fn found(&self, id: &str) -> bool {
        self.relevant.iter().any(|found| found == id)
    }

    /// Found or pinned.
    fn surfaced(&self, id: &str) -> bool {
        self.found(id) || self.pinned.iter().any(|pinned| pinned == id)
    }
}

/// The hits that are left, with the participants of the relations among them.
fn relevant<'a>(beside: &'a Beside, hits: impl IntoIterator<Item = &'a str>, places: usize) -> Vec<String> {
    if beside.unsearched {
        return Vec::new();
    }
    let known: HashSet<&str> = beside.known.iter().map(String::as_str).collect();
    let mut seen: HashSet<&str> = beside.shown.iter().map(String::as_str).collect();
    let meant = |id| beside.stands_for.get(id).map_or(id, String::as_str);
    let mut relevant: Vec<&str> = Vec::new();
    for id in hits.into_iter().map(meant) {
        if known.contains(id) && seen.insert(id) {
            relevant.push(id);
        }
    }
    let participants = relevant.iter().filter_map(|id| beside.participants.get(*id)).flatten();
    let added: Vec<&str> = participants.map(String::as_str).filter(|id| seen.insert(id)).collect();
    relevant.into_iter().chain(added).take(places).map(str::to_owned).collect()
}

fn first(ids: &[String], places: usize) -> Vec<String> {
    ids.iter().take(places).cloned().collect()
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn failures(assertions: &Assertions, context: &Evaluation) -> Vec<Failure> {
    let Assertions { relevant, pinned, questions, prelude, beside, .. } = assertions;
    let mut failures = Vec::new();
    let surfaced = |id: &&String| context.surfaced(id);
    let missing = |id: &&String| !context.surfaced(id);
    failures.extend(relevant.must_include.iter().filter(missing).cloned().map(Failure::NotIncluded));
    failures.extend(relevant.must_exclude.iter().filter(surfaced).cloned().map(Failure::Forbidden));
    failures.extend(relevant.should_include.iter().filter(missing).cloned().map(Failure::NotSurfaced));
    if let Some(exactly) = &relevant.should_only_include {
        let unexpected = context.relevant.iter().filter(|id| !exactly.contains(id));
        failures.extend(unexpected.cloned().map(Failure::Unexpected));
        let expected = assertions.expected().into_iter().filter(|id| !context.found(id));
        failures.extend(expected.map(|id| Failure::Missing(id.to_owned())));
    }
    let found = context.relevant.len();
    if let Some(most) = relevant.max_count.filter(|most| found > *most as usize) {
        failures.push(Failure::TooMany { found, most });
    }
    if let Some(least) = relevant.min_count.filter(|least| found < *least as usize) {
        failures.push(Failure::TooFew { found, least });
    }
    let rank = |id: &String| context.relevant.iter().position(|found| found == id);
    for (first, later) in &relevant.ordered_before {
        match (rank(first), rank(later)) {
            (Some(before), Some(behind)) if before < behind => {}
            (Some(_), Some(_)) => failures.push(Failure::OutOfOrder { first: first.clone(), later: later.clone() }),
            (before, behind) => {
                failures.extend(before.is_none().then(|| Failure::Unranked(first.clone())));
                failures.extend(behind.is_none().then(|| Failure::Unranked(later.clone())));
            }
        }
    }
    let without = |list: &[String], of: &[String]| -> Vec<String> {
        list.iter().filter(|id| !of.contains(id)).cloned().collect()
    };
    let within =
        |list: &[String], of: &[String]| -> Vec<String> { list.iter().filter(|id| of.contains(id)).cloned().collect() };
    failures.extend(without(&pinned.must_include, &context.pinned).into_iter().map(Failure::NotPinned));
    failures.extend(within(&pinned.must_exclude, &context.pinned).into_iter().map(Failure::Pinned));
    failures.extend(without(&questions.must_include, &context.questions).into_iter().map(Failure::NotAsked));
    failures.extend(within(&questions.must_exclude, &context.questions).into_iter().map(Failure::Asked));
    failures.extend((prelude.non_empty && beside.prelude.is_empty()).then_some(Failure::NoPrelude));
    failures.extend((prelude.is_null && !beside.prelude.is_empty()).then_some(Failure::Prelude));
    let occurs = |text: &&String| beside.prelude.contains(text.as_str());
    let lacks = |text: &&String| !occurs(text);
    failures.extend(prelude.contains.iter().filter(lacks).cloned().map(Failure::PreludeLacks));
    failures.extend(prelude.must_not_contain.iter().filter(occurs).cloned().map(Failure::PreludeContains));
    failures.extend(context.noise.iter().cloned().map(Failure::Noise));
    failures
}
