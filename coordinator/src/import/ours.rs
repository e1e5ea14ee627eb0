//! Our fields: what is looked for in a file of others, and where its user says that it lies.

use std::{collections::BTreeMap, str::FromStr};

use super::{advice::shown, lookup::plain};

/// Longest `--field`, in bytes, so that messages stay short.
const MOST_BYTES: usize = 1 << 10;

/// A field of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ours {
    /// The question's id, of the dataset or one that counts.
    QuestionId,
    /// The question's text.
    Question,
    /// The question's place within its conversation, counted from 0.
    Index,
    /// Id of the bank that the question is about.
    Conversation,
    /// The question's category, by name or number.
    Category,
    /// The answer that was given.
    Answer,
    /// The grade, or several of one answer.
    Score,
    /// What was retrieved, best first.
    Retrieved,
    /// The metric of the grades.
    Metric,
}

impl Ours {
    /// All fields, in the order of their declaration.
    pub(crate) const ALL: [Self; 9] = [
        Self::QuestionId,
        Self::Question,
        Self::Index,
        Self::Conversation,
        Self::Category,
        Self::Answer,
        Self::Score,
        Self::Retrieved,
        Self::Metric,
    ];

    /// Its name in `--field` and in `import --forms`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::QuestionId => "question_id",
            Self::Question => "question",
            Self::Index => "index",
            Self::Conversation => "conversation",
            Self::Category => "category",
            Self::Answer => "answer",
            Self::Score => "score",
            Self::Retrieved => "retrieved",
            Self::Metric => "metric",
        }
    }
}

impl FromStr for Ours {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|ours| ours.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("'{name}' is no field of ours; they are {names}")
        })
    }
}

/// Where the user of a file says that fields of ours lie, as dotted paths (`--field OURS=THEIRS`).
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Given(BTreeMap<Ours, String>);

impl Given {
    /// Reads `OURS=THEIRS`, each field of ours once.
    ///
    /// # Errors
    /// A field that is none of ours, no path or one that is too long, or a second path for one field.
    pub(crate) fn read<'a>(flags: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut given = BTreeMap::new();
        for flag in flags {
            if flag.len() > MOST_BYTES {
                return Err(format!("--field {}…: longer than {MOST_BYTES} bytes", shown(flag)));
            }
            let parts = flag.split_once('=').filter(|(_, theirs)| !theirs.is_empty());
            let (ours, theirs) =
                parts.ok_or_else(|| format!("--field {flag}: write OURS=THEIRS, as in score=grade"))?;
            let ours: Ours = ours.parse().map_err(|e| format!("--field {flag}: {e}"))?;
            if given.insert(ours, theirs.to_owned()).is_some() {
                return Err(format!("--field {flag}: {} is named twice", ours.name()));
            }
        }
        Ok(Self(given))
    }

    /// The path of a field.
    pub(crate) fn path(&self, ours: Ours) -> Option<&str> {
        self.0.get(&ours).map(String::as_str)
    }

    /// Whether the user says that what lies at a path is another field than `ours`.
    pub(crate) fn is_another(&self, theirs: &str, ours: Ours) -> bool {
        let is_same = |path: &str| path.split('.').map(plain).eq(theirs.split('.').map(plain));
        self.paths().any(|(of, path)| of != ours && is_same(path))
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = (Ours, &str)> {
        self.0.iter().map(|(ours, path)| (*ours, path.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_given_once_and_by_their_names() {
        let given = Given::read(["score=m.f1", "question=a=b"]).expect("reads");
        assert_eq!((given.path(Ours::Score), given.path(Ours::Question)), (Some("m.f1"), Some("a=b")));
        assert!(given.is_another("M.F 1", Ours::Answer) && !given.is_another("mf1", Ours::Answer));
        assert!(!given.is_another("m.f1", Ours::Score), "it is itself");
        for (flags, word) in [
            (["score", "answer=a"], "OURS=THEIRS"),
            (["score=", "answer=a"], "OURS=THEIRS"),
            (["f1=x", "answer=a"], "question_id"),
            (["score=a", "score=b"], "twice"),
        ] {
            let refused = Given::read(flags).expect_err("is refused");
            assert!(refused.contains(word), "{refused}");
        }
        let long = Given::read([format!("score={}", "x".repeat(MOST_BYTES)).as_str()]).expect_err("is refused");
        assert!(long.contains("longer than") && long.len() < 200, "{long}");
    }
}
