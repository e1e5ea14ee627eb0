//! The judge's prompts of LongMemEval's authors, from a file of the user: this build knows their checksums and not their words.
//!
//! The file is a JSON object of five texts, one for each kind of question (docs/GRADERS.md). A prompt is theirs if what it makes of
//! a fixed question, answer and response has the sha256 and the length that theirs has.

use std::collections::BTreeMap;

use bench_proto::{
    ids::Sha256Hash,
    profile::{OwnRubric, Profile},
};

use super::template;

/// Name of the parser by which the authors read the replies.
pub const PARSER: &str = "yes-anywhere";
/// Begin of the names of the rubrics that are the authors'.
pub const OFFICIAL: &str = "judge-official-";
/// The most bytes of a file of prompts.
pub const MOST_BYTES: u64 = 64 << 10;

/// A kind of question.
struct Kind {
    /// Its name in the file.
    name: &'static str,
    /// The rubric of the dataset's profile that it takes the place of.
    ours: &'static str,
    sha256: &'static str,
    characters: usize,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "standard",
        ours: "judge-whole",
        sha256: "3f171ee316a15eb02a1ff6a6015d437bc63f1b20255fe4b29e951897ca8260d0",
        characters: 506,
    },
    Kind {
        name: "temporal",
        ours: "judge-days",
        sha256: "95162adedb67de05a47de333e054b26d92cb7c9a035a4b23554b96588988f8f0",
        characters: 768,
    },
    Kind {
        name: "update",
        ours: "judge-update",
        sha256: "d4087fd457e8e73c98935bba8c25505ad9c05e9550b80d7bdfbddce223805a1c",
        characters: 446,
    },
    Kind {
        name: "preference",
        ours: "judge-preference",
        sha256: "f56a47ca87e2fad9a984df894df20f5d5846dd0086610cde5222f7a900a7bfa7",
        characters: 454,
    },
    Kind {
        name: "abstention",
        ours: "judge-missing",
        sha256: "4535e7433fc4929b2448d4b4fc29ba4dce83599877b116398942b4b7216b42d6",
        characters: 430,
    },
];

/// Question, answer and response of the renderings that have these checksums.
const RENDERED: [&str; 3] = ["Q?", "A", "R"];

/// A file of prompts that is not the authors', or not for this dataset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OfficialError {
    /// No JSON object of texts.
    #[error("it is no JSON object of five texts ({names}): {0}", names = names())]
    Form(String),
    /// A kind that it lacks.
    #[error("it has no prompt '{0}': it needs {names}", names = names())]
    Missing(&'static str),
    /// A kind that nobody knows.
    #[error("it has a prompt '{0}', which is none of {names}", names = names())]
    Unknown(String),
    /// A place that is not there, or there twice.
    #[error("its prompt '{0}' is no template: {1}")]
    Place(&'static str, String),
    /// Not what the authors wrote.
    #[error(
        "its prompt '{kind}' is not that of LongMemEval's authors: with the question {question}, the answer {answer} and the response {response} it has sha256 {got} ({got_characters} characters), theirs has {expected} ({characters})",
        question = RENDERED[0], answer = RENDERED[1], response = RENDERED[2]
    )]
    Checksum {
        /// The kind of question, by its name in the file.
        kind: &'static str,
        /// What it has.
        got: String,
        /// Its length in characters.
        got_characters: usize,
        /// What theirs has.
        expected: &'static str,
        /// The length of theirs.
        characters: usize,
    },
    /// A dataset whose questions are of other kinds.
    #[error("they are the prompts of longmemeval, and this dataset's profile has no rubric '{0}'")]
    Dataset(&'static str),
}

fn names() -> String {
    KINDS.map(|kind| kind.name).join(", ")
}

/// Reads a file of prompts and puts them into the profile of LongMemEval, in the place of our own.
///
/// # Errors
/// [`OfficialError`], with both checksums where a prompt is not the authors'.
pub fn take(file: &str, profile: &mut Profile) -> Result<(), OfficialError> {
    let mut texts: BTreeMap<String, String> =
        serde_json::from_str(file).map_err(|error| OfficialError::Form(error.to_string()))?;
    let known = profile.rubric_names();
    let has_place = |kind: &&Kind| known.contains(kind.ours) || known.contains(name_of(kind).as_str());
    if let Some(kind) = KINDS.iter().find(|kind| !has_place(kind)) {
        return Err(OfficialError::Dataset(kind.ours));
    }
    let mut rubrics = BTreeMap::new();
    for kind in &KINDS {
        let text = texts.remove(kind.name).ok_or(OfficialError::Missing(kind.name))?;
        check(kind, &text)?;
        rubrics.insert(kind.ours, text);
    }
    if let Some(name) = texts.into_keys().next() {
        return Err(OfficialError::Unknown(name));
    }
    let theirs = |ours: &mut Option<String>| {
        if let Some(kind) = KINDS.iter().find(|kind| Some(kind.ours) == ours.as_deref()) {
            *ours = Some(name_of(kind));
        }
    };
    profile.categories.values_mut().for_each(|rules| theirs(&mut rules.rubric));
    theirs(&mut profile.by_gold.abstain);
    theirs(&mut profile.by_gold.criteria);
    for (kind, rules) in KINDS.iter().filter_map(|kind| Some((kind, rubrics.remove(kind.ours)?))) {
        let own = OwnRubric { rules, parser: Some(PARSER.to_owned()), ..OwnRubric::default() };
        profile.rubrics.insert(name_of(kind), own);
    }
    Ok(())
}

/// Puts our own rubrics back into the place of the authors', which go out of the profile; whether they were in it.
pub fn give_back(profile: &mut Profile) -> bool {
    let mut were_there = false;
    let mut ours = |theirs: &mut Option<String>| {
        if let Some(kind) = KINDS.iter().find(|kind| theirs.as_deref() == Some(name_of(kind).as_str())) {
            *theirs = Some(kind.ours.to_owned());
            were_there = true;
        }
    };
    profile.categories.values_mut().for_each(|rules| ours(&mut rules.rubric));
    ours(&mut profile.by_gold.abstain);
    ours(&mut profile.by_gold.criteria);
    if were_there {
        profile.rubrics.retain(|name, _| KINDS.iter().all(|kind| name_of(kind) != *name));
    }
    were_there
}

fn name_of(kind: &Kind) -> String {
    format!("{OFFICIAL}{}", kind.name)
}

fn check(kind: &Kind, text: &str) -> Result<(), OfficialError> {
    template::check(text, false).map_err(|problem| OfficialError::Place(kind.name, problem))?;
    let rendered = template::render(text, [RENDERED[0], RENDERED[1], RENDERED[2], ""]);
    let (got, got_characters) = (Sha256Hash::of_bytes(rendered.as_bytes()).hex(), rendered.chars().count());
    if got == kind.sha256 && got_characters == kind.characters {
        return Ok(());
    }
    let (expected, characters) = (kind.sha256, kind.characters);
    Err(OfficialError::Checksum { kind: kind.name, got, got_characters, expected, characters })
}

/// Whether every rubric that a profile grades by is one of the authors', unchanged.
#[must_use]
pub fn is_official(profile: &Profile) -> bool {
    let names = profile.rubric_names();
    let is_theirs = |name: &&str| {
        let kind = KINDS.iter().find(|kind| name_of(kind) == **name);
        let own = profile.rubrics.get(*name).filter(|own| own.parser.as_deref() == Some(PARSER));
        kind.zip(own).is_some_and(|(kind, own)| check(kind, &own.rules).is_ok())
    };
    !names.is_empty() && names.iter().all(is_theirs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scorers::reference;

    #[test]
    fn vectors_longmemeval_judge_prompts() {
        let Some(all) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else { return };
        let vectors = reference::list(&all["sections"]["longmemeval_judge_prompts"]["vectors"]);
        assert_eq!(vectors.len(), 7);
        for vector in vectors {
            let kind = match (reference::str(&vector["question_type"]), vector["abstention"].as_bool()) {
                (_, Some(true)) => "abstention",
                ("temporal-reasoning", _) => "temporal",
                ("knowledge-update", _) => "update",
                ("single-session-preference", _) => "preference",
                _ => "standard",
            };
            let kind = KINDS.iter().find(|known| known.name == kind).expect("is known");
            assert_eq!(vector["official_sha256"], kind.sha256, "{vector}");
            assert_eq!(vector["official_len"], kind.characters, "{vector}");
        }
    }

    /// Another harness has copied the authors' prompts: three of them to the letter, two without one of their characters.
    #[test]
    fn vectors_jeffs_go_judge_prompt_sha() {
        let Some(all) = reference::json("vectors/astrocyte-and-jeffs-brain.json") else { return };
        let vectors = reference::list(&all["sections"]["jeffs_go"]["vectors"]["judge_prompt_sha_QAR"]);
        assert_eq!(vectors.len(), 7);
        for vector in vectors {
            let (kind, is_copy) = match (reference::str(&vector["question_type"]), vector["abstention"].as_bool()) {
                (_, Some(true)) => ("abstention", true),
                ("temporal-reasoning", _) => ("temporal", false),
                ("knowledge-update", _) => ("update", true),
                ("single-session-preference", _) => ("preference", true),
                _ => ("standard", false),
            };
            let kind = KINDS.iter().find(|known| known.name == kind).expect("is known");
            let shorter = usize::from(!is_copy);
            assert_eq!(vector["prompt_sha256"] == kind.sha256, is_copy, "{vector}");
            assert_eq!(vector["prompt_len_bytes"], kind.characters - shorter, "{vector}");
        }
    }

    /// LongMemEval's profile as far as this goes.
    fn profile() -> Profile {
        let mut profile = Profile::implied();
        for (rules, kind) in profile.categories.values_mut().zip(&KINDS) {
            rules.rubric = Some(kind.ours.to_owned());
        }
        for kind in &KINDS {
            profile.rubrics.insert(kind.ours.to_owned(), OwnRubric { rules: "- x".to_owned(), ..OwnRubric::default() });
        }
        profile.by_gold.criteria = None;
        profile.by_gold.abstain = Some("judge-missing".to_owned());
        profile
    }

    fn error(file: &str, profile: &mut Profile) -> String {
        let before = profile.clone();
        let error = take(file, profile).expect_err("is refused").to_string();
        assert_eq!(*profile, before, "nothing of it was taken");
        error
    }

    #[test]
    fn what_is_not_the_authors_is_refused() {
        let mut profile = profile();
        assert!(!is_official(&profile));
        insta::assert_snapshot!(error("[]", &mut profile), @"it is no JSON object of five texts (standard, temporal, update, preference, abstention): invalid type: sequence, expected a map at line 1 column 0");
        insta::assert_snapshot!(error("{}", &mut profile), @"it has no prompt 'standard': it needs standard, temporal, update, preference, abstention");
        insta::assert_snapshot!(error(r#"{"standard": "yes?"}"#, &mut profile), @"its prompt 'standard' is no template: {question} is missing");
        insta::assert_snapshot!(error(r#"{"standard": "{question} {answer} {response}"}"#, &mut profile), @"its prompt 'standard' is not that of LongMemEval's authors: with the question Q?, the answer A and the response R it has sha256 fb296a6fed6b7073619a3b6c49ccdbc3ab467765d545653051908cff214a4cbf (6 characters), theirs has 3f171ee316a15eb02a1ff6a6015d437bc63f1b20255fe4b29e951897ca8260d0 (506)");
        insta::assert_snapshot!(error("{}", &mut Profile::implied()), @"they are the prompts of longmemeval, and this dataset's profile has no rubric 'judge-whole'");
        // a profile that only says so
        for kind in &KINDS {
            let own = OwnRubric {
                rules: "{question}{answer}{response}".to_owned(),
                parser: Some(PARSER.to_owned()),
                ..OwnRubric::default()
            };
            profile.rubrics.insert(name_of(kind), own);
            profile.categories.values_mut().for_each(|rules| rules.rubric = Some(name_of(kind)));
        }
        profile.by_gold.abstain = None;
        assert!(!is_official(&profile), "the words count, not the name");
    }

    #[test]
    fn our_rubrics_come_back_into_the_place_of_theirs() {
        let ours = profile();
        let mut theirs = ours.clone();
        for kind in &KINDS {
            theirs.rubrics.insert(name_of(kind), OwnRubric { rules: "x".to_owned(), ..OwnRubric::default() });
        }
        for (rules, kind) in theirs.categories.values_mut().zip(&KINDS) {
            rules.rubric = Some(name_of(kind));
        }
        theirs.by_gold.abstain = Some(format!("{OFFICIAL}abstention"));
        assert!(give_back(&mut theirs));
        assert_eq!(theirs, ours);
        assert!(!give_back(&mut theirs), "and there is nothing more to give back");
        assert_eq!(theirs, ours);
    }

    /// The authors' own words are read where the user has them: `BENCH_OFFICIAL_PROMPTS` names such a file.
    #[test]
    fn the_authors_prompts_take_the_place_of_ours() {
        let Some(path) = std::env::var_os("BENCH_OFFICIAL_PROMPTS") else {
            eprintln!("NOT CHECKED with the authors' own prompts: BENCH_OFFICIAL_PROMPTS names no file");
            return;
        };
        let file = std::fs::read_to_string(path).expect("the file that was named is there");
        let mut profile = profile();
        take(&file, &mut profile).expect("they are the authors'");
        assert!(is_official(&profile));
        let before = profile.clone();
        take(&file, &mut profile).expect("and so they are again");
        assert_eq!(profile, before);
        assert!(profile.rubric_names().iter().all(|name| name.starts_with(OFFICIAL)), "{:?}", profile.rubric_names());
        profile.rubrics.values_mut().for_each(|own| own.rules.push(' '));
        assert!(!is_official(&profile));
    }
}
