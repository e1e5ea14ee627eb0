//! Rubrics, which are the judges' prompts: one for each kind of question. Which rubric grades a question is told by the
//! dataset's profile, which may bring rubrics of its own.
//!
//! Stricter than the judges that most published LoCoMo figures come from, which accept whatever stays on the topic: here
//! the answer must state what the gold states, and another date is another date.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use bench_proto::{
    dataset::{BankContent, GoldRecord, Question},
    profile::{GoldRubrics, OwnRubric, Profile},
    scenario::Scenario,
    spec::JudgingSpec,
};

use super::{
    Program, ReplyForm as _, dimensions, evidence, graded,
    judge_input::{JudgeInput, Reference, Rubric},
    lines, ordering, reflect,
    reply::Verdict,
    single, template,
};
use crate::prompts::{self, Messages, ProfileError, PromptHashes, answer::Instructions, hash};

/// Version of the rubrics and their layout.
pub const VERSION: u32 = 1;

const SINGLE: &str = "\
- The answer must state the fact that the reference states. Names, numbers and places must be the same.";

const MULTI: &str = "\
- The reference may list several things. The answer must give all of them; an answer that leaves one out is incorrect.
- Things beyond the reference are fine only if they do not contradict it and are not offered in place of it.";

const TEMPORAL: &str = "\
- The same point or period in time is correct in any notation: \"7 May 2023\", \"May 7th, 2023\" and \"2023-05-07\" are one date. \
A relative expression is correct if it names the same time as the reference.
- Another time is incorrect, even if it is only one day, week or month away.
- If the reference names a day, an answer that names only the month or the year is incorrect. If the reference names only a \
month, a year or a week, an answer that lies within it is correct.
- A missing year is fine if day and month are the same.
- Durations and counts must be equal.";

const OPEN: &str = "\
- The question asks for a conclusion. The answer must come to the same conclusion as the reference; the reasons may differ, \
and need not be given.";

const CRITERIA: &str = "\
- The reference is a list of criteria. The answer must meet every one of them.";

const ANY_OF: &str = "\
- The reference holds one text a line, each of which is right. The answer must state what one of them states.
- Names, numbers, places and times must be the same as there.";

const ABSTAIN: &str = "\
- The conversations do not hold the answer to this question. It may rest on a false assumption, such as the wrong person.
- The answer is correct if it says in any words that the information is not available, or that the assumption is wrong.
- The answer is incorrect if it states an answer as if it were known, even with a hedge, or if it is empty.";

/// The rubrics of this build, one line each. Adding one changes no fingerprint: runs hash what their profile uses.
static RUBRICS: &[Rubric<'static>] = &[
    verdict("judge-single", SINGLE, Reference::Text),
    verdict("judge-multi", MULTI, Reference::Text),
    verdict("judge-temporal", TEMPORAL, Reference::Text),
    verdict("judge-open", OPEN, Reference::Text),
    verdict("judge-criteria", CRITERIA, Reference::Criteria),
    verdict("judge-any-of", ANY_OF, Reference::Text),
    verdict("judge-abstain", ABSTAIN, Reference::Hidden),
    of_program("judge-graded", &graded::GRADED),
    of_program("judge-dimensions", &dimensions::DIMENSIONS),
    of_program("judge-reflect", &reflect::REFLECT),
    of_program("judge-lines", &lines::LINES),
    of_program("judge-lines-whole", &lines::WHOLE),
    of_program("judge-lines-unasked", &lines::UNASKED),
    of_program("judge-lines-unasked-whole", &lines::UNASKED_WHOLE),
    of_program("judge-ordering", &ordering::ORDERING),
    #[cfg(test)]
    verdict("judge-added", "- Added for a test.", Reference::Text),
];

/// A rubric of one call with a binary verdict.
const fn verdict<'a>(name: &'a str, rules: &'a str, reference: Reference) -> Rubric<'a> {
    Rubric { name, rules, reference, program: &single::VERDICT }
}

/// A rubric whose texts are its program's.
const fn of_program(name: &'static str, program: &'static dyn Program) -> Rubric<'static> {
    Rubric { name, rules: "", reference: Reference::Text, program }
}

/// A profile's own rubrics, and those of this build whose names it does not take: what a run was graded by stays what it was when
/// a later build has a rubric of that name.
fn all(profile: &Profile) -> impl Iterator<Item = Rubric<'_>> {
    let own = profile.rubrics.iter().filter_map(|(name, own)| own_rubric(name, own));
    let of_build = RUBRICS.iter().copied().filter(|rubric| !profile.rubrics.contains_key(rubric.name));
    own.chain(of_build)
}

/// A profile's own rubric; none where its replies cannot be read by this build.
fn own_rubric<'a>(name: &'a str, own: &'a OwnRubric) -> Option<Rubric<'a>> {
    if let Some(parser) = &own.parser {
        let program = template::read_by(parser)?;
        return Some(Rubric { name, rules: &own.rules, reference: Reference::Text, program });
    }
    let reference = match own {
        OwnRubric { hides_reference: true, .. } => Reference::Hidden,
        OwnRubric { unanswerable: true, .. } => Reference::Explanation,
        OwnRubric { shows_evidence: true, .. } => Reference::TextAndEvidence,
        _ => Reference::Text,
    };
    Some(verdict(name, own.rules.trim_end(), reference))
}

/// Names of the rubrics of this build, and of a profile's own.
pub fn names(profile: &Profile) -> impl Iterator<Item = &str> {
    all(profile).map(|rubric| rubric.name)
}

/// The rubric of a name, of this build or of the profile.
///
/// # Errors
/// [`ProfileError::Rubric`].
pub fn find<'a>(profile: &'a Profile, name: &str) -> Result<Rubric<'a>, ProfileError> {
    all(profile).find(|rubric| rubric.name == name).ok_or_else(|| ProfileError::Rubric(name.to_owned()))
}

/// Whether a rubric that a profile's questions can be graded by shows judges the evidence.
#[must_use]
pub fn shows_evidence(profile: &Profile) -> bool {
    used(profile).into_iter().any(|name| find(profile, name).is_ok_and(Rubric::shows_evidence))
}

/// Notes in the records what judges are shown of their evidence: they can be graded then without the bank. Nothing is noted where no
/// rubric of the profile shows any.
pub fn keep_evidence(profile: &Profile, bank: &BankContent, records: &mut [GoldRecord]) {
    if shows_evidence(profile) {
        records.iter_mut().for_each(|gold| evidence::keep(bank, gold));
    }
}

/// The rubric for a question.
///
/// # Errors
/// [`ProfileError::Ungraded`] and [`ProfileError::Rubric`].
pub fn rubric_of<'a>(
    profile: &'a Profile,
    category: &str,
    gold: Option<&GoldRecord>,
) -> Result<Rubric<'a>, ProfileError> {
    let has_none = profile.is_unanswerable(category) || gold.is_some_and(|record| record.gold.is_unanswerable());
    let of_dataset = (has_none && only_knows_answers(profile)).then(|| profile.rubric_of_dataset(category, gold));
    let name = of_dataset.flatten().or_else(|| profile.rubric(category, gold));
    let name = name.ok_or_else(|| ProfileError::Ungraded { categories: vec![category.to_owned()] })?;
    // a rubric that the profile does not list is in no fingerprint
    if !used(profile).contains(name) {
        return Err(ProfileError::Rubric(name.to_owned()));
    }
    find(profile, name)
}

/// Whether one rubric is for all questions, and it says that not knowing is wrong: it cannot grade those that have no answer, which
/// keep the dataset's.
fn only_knows_answers(profile: &Profile) -> bool {
    let only = profile.only_rubric.as_deref().map(|only| find(profile, only));
    only.is_some_and(|only| only.is_ok_and(Rubric::expects_an_answer))
}

/// Names of all rubrics that questions can be graded by.
fn used(profile: &Profile) -> BTreeSet<&str> {
    let mut names = profile.rubric_names();
    if only_knows_answers(profile) {
        let unanswerable = profile.categories.values().filter(|rules| rules.unanswerable);
        names.extend(unanswerable.filter_map(|rules| rules.rubric.as_deref()));
        names.extend(profile.by_gold.abstain.as_deref());
        names.extend(profile.by_question.iter().map(String::as_str));
    }
    names
}

/// Checks that questions of these categories can be asked by a profile, and graded by it when there is a judge.
///
/// # Errors
/// The first category or name that nobody knows, and all categories that a judge could not grade.
pub fn check<'a>(
    profile: &Profile,
    categories: impl IntoIterator<Item = &'a str>,
    is_judged: bool,
) -> Result<(), ProfileError> {
    Instructions::from_profile(profile, Scenario::Answer)?;
    for name in used(profile) {
        find(profile, name)?;
        if let Some(own) = profile.rubrics.get(name).filter(|own| own.parser.is_some()) {
            let problem = |problem| ProfileError::Template(name.to_owned(), problem);
            template::check(&own.rules, own.hides_reference).map_err(problem)?;
        }
    }
    let mut ungraded = Vec::new();
    for category in categories {
        let Some(rules) = profile.categories.get(category) else {
            let known = profile.categories.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(ProfileError::Category { category: category.to_owned(), known });
        };
        let has_rubric = rules.rubric.is_some() || profile.only_rubric.is_some() || !profile.by_question.is_empty();
        if is_judged && !has_rubric {
            ungraded.push(category.to_owned());
        }
    }
    match ungraded.is_empty() {
        true => Ok(()),
        false => Err(ProfileError::Ungraded { categories: ungraded }),
    }
}

/// Whether some of these categories have no rubric, and the profile has some by which their golds may be graded: what a judge could
/// not grade is then told by the golds alone ([`ungraded`]).
#[must_use]
pub fn is_told_by_golds<'a>(profile: &Profile, categories: impl IntoIterator<Item = &'a str>) -> bool {
    let GoldRubrics { criteria, abstain } = &profile.by_gold;
    let has_others = criteria.is_some() || abstain.is_some() || !profile.by_question.is_empty();
    let has_none = |name: &str| profile.categories.get(name).is_some_and(|rules| rules.rubric.is_none());
    profile.only_rubric.is_none() && has_others && categories.into_iter().any(has_none)
}

/// The categories of those questions, given with their golds, that no judge could grade.
///
/// # Errors
/// [`ProfileError::Rubric`].
pub fn ungraded<'a>(
    profile: &Profile,
    questions: impl IntoIterator<Item = (&'a str, Option<&'a GoldRecord>)>,
) -> Result<BTreeSet<String>, ProfileError> {
    let mut ungraded = BTreeSet::new();
    for (category, gold) in questions {
        match rubric_of(profile, category, gold) {
            Ok(_) => {}
            Err(ProfileError::Ungraded { categories }) => ungraded.extend(categories),
            Err(other) => return Err(other),
        }
    }
    Ok(ungraded)
}

/// All prompts of this build and of a profile as text, by their hashes: what they make of a fixed sample.
#[must_use]
pub fn texts(profile: &Profile) -> BTreeMap<String, Messages> {
    let judges = all(profile).map(|rubric| rubric.program.sample(rubric));
    prompts::texts(profile).chain(judges).map(|text| (hash(&text), text)).collect()
}

impl<'a> JudgeInput<'a> {
    /// What a judge is told of a question and its answer, by the dataset's profile; nothing of the evidence yet.
    ///
    /// # Errors
    /// As [`rubric_of`].
    pub fn by_profile(
        profile: &'a Profile,
        question: &'a Question,
        gold: Option<&'a GoldRecord>,
        answer: &'a str,
    ) -> Result<Self, ProfileError> {
        let rubric = rubric_of(profile, &question.category, gold)?;
        let gold = gold.map(|record| &record.gold);
        Ok(Self {
            rubric,
            question: &question.text,
            asked_at: question.time_text.as_deref(),
            gold,
            evidence: None,
            answer,
        })
    }
}

/// The hashes of the prompts of all rubrics that a profile uses.
///
/// # Errors
/// [`ProfileError::Rubric`].
pub fn prompt_hashes(profile: &Profile) -> Result<PromptHashes, ProfileError> {
    let of = |name: &str| {
        let rubric = find(profile, name)?;
        Ok((name.to_owned(), hash(&rubric.program.sample(rubric))))
    };
    used(profile).into_iter().map(of).collect()
}

/// What the rubrics that a profile uses ask of a judge beside the binary verdict.
///
/// # Errors
/// [`ProfileError::Rubric`].
pub fn judging_spec(profile: &Profile) -> Result<JudgingSpec, ProfileError> {
    let mut spec = JudgingSpec::default();
    for name in used(profile) {
        let program = find(profile, name)?.program;
        let forms = program.forms().into_iter().map(|form| (form.name(), form.version()));
        // what runs have said of themselves since before there were other forms
        let others = forms.filter(|form| *form != (Verdict.name(), 1));
        spec.forms.extend(others.map(|(name, version)| (name.to_owned(), version)));
        for metric in program.metrics() {
            if spec.metrics.iter().all(|known| known.name != metric.name) {
                spec.metrics.push(metric);
            }
        }
    }
    Ok(spec)
}
