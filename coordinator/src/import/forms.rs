//! The forms in which results are published: which there are, and of which one a file is.
//!
//! A form is a file of `forms/` and a line in [`FORMS`]. A record is of a form when it has all of the form's marks, and when
//! the form finds in it whatever [`names`] would find: so a further form never changes how a file was read before it was known.
//! What is of no form is read by [`names`], which knows nearly every name in use.

mod evermemos;
mod grades;
mod lines;
mod locomo;
mod longmemeval;
mod mem0;
mod names;
mod questions;
mod zep;

use std::{borrow::Cow, collections::HashSet, fmt::Write as _, sync::LazyLock};

use serde_json::{Map, Value, json};

use super::{
    lookup::{By, FieldPlace, Fields, Found},
    ours::{Given, Ours},
    records::Record,
};

/// A form of results.
#[derive(Debug)]
pub(crate) struct Form {
    /// Name of the form in messages and in docs/IMPORT.md.
    name: &'static str,
    /// Who writes it, in a line.
    about: &'static str,
    /// Fields that every record of it has, separated by blanks.
    marks: &'static str,
    /// Where each of our fields lies: places separated by blanks, best first, written as in [`FieldPlace`].
    fields: &'static [(Ours, &'static str)],
    /// Its grades are divided by this, before `--scale`.
    scale: f64,
}

/// The known forms, those before others that are recognised first.
const FORMS: &[Form] = &[
    questions::FORM,
    longmemeval::FORM,
    evermemos::FORM,
    mem0::FORM,
    zep::FORM,
    locomo::FORM,
    grades::FORM,
    lines::FORM,
];

/// A form whose places have been read.
#[derive(Debug)]
pub(crate) struct Known {
    form: &'static Form,
    marks: Vec<FieldPlace>,
    /// By [`Ours`] as a number.
    places: [Vec<FieldPlace>; Ours::ALL.len()],
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| FORMS.iter().map(Known::from_form).collect());
static BY_NAMES: LazyLock<Known> = LazyLock::new(|| Known::from_form(&names::FORM));

/// The reading of what is of no form.
pub(crate) fn by_names() -> &'static Known {
    &BY_NAMES
}

/// All forms, [`by_names`] last.
pub(super) fn all() -> impl Iterator<Item = &'static Known> {
    KNOWN.iter().chain(std::iter::once(by_names()))
}

/// The form that all records are of.
pub(crate) fn form_of(records: &[Record], given: &Given) -> &'static Known {
    let mut left: Vec<&'static Known> = KNOWN.iter().collect();
    for record in records {
        let fields = Fields::in_record(&record.fields);
        left.retain(|form| form.is_form_of(&fields, given));
        if left.is_empty() {
            break;
        }
    }
    left.first().copied().filter(|_| !records.is_empty()).unwrap_or_else(by_names)
}

/// The form most of whose marks a record has, and the marks that it has not.
pub(super) fn nearest(fields: &Fields<'_>) -> Option<(&'static Known, Vec<&'static str>)> {
    let marked = |form: &'static Known| {
        let marks = form.form.marks.split_whitespace().zip(&form.marks);
        let missing: Vec<&str> = marks
            .filter(|(_, mark)| fields.find(std::slice::from_ref(*mark)).is_empty())
            .map(|(name, _)| name)
            .collect();
        (missing.len() < form.marks.len()).then_some((form, missing))
    };
    // of equally near ones the first
    KNOWN.iter().rev().filter_map(marked).max_by_key(|(form, missing)| {
        let found = form.marks.len() - missing.len();
        (found * 100 / form.marks.len(), found)
    })
}

impl Known {
    fn from_form(form: &'static Form) -> Self {
        let places = |text: &str| text.split_whitespace().map(FieldPlace::read).collect();
        let of_ours = |ours: Ours| {
            let text = form.fields.iter().find(|(of, _)| *of == ours).map_or("", |(_, text)| text);
            places(text)
        };
        Self { form, marks: places(form.marks), places: Ours::ALL.map(of_ours) }
    }

    /// Name of the form in messages.
    pub(crate) fn name(&self) -> &'static str {
        self.form.name
    }

    /// Its marks, for a message.
    pub(super) fn marks(&self) -> String {
        self.form.marks.split_whitespace().collect::<Vec<_>>().join(", ")
    }

    /// What grades are divided by.
    pub(crate) fn scale(&self) -> f64 {
        self.form.scale
    }

    /// Where a field of ours lies in a record, best first; only there where the user has said it, and nowhere where another field
    /// of ours lies by what the user says.
    pub(crate) fn find<'a>(&self, fields: &Fields<'a>, given: &Given, ours: Ours) -> Vec<Found<'a>> {
        match given.path(ours) {
            Some(path) => {
                let value = fields.at(path).map(Cow::Borrowed);
                value.map(|value| Found { name: path.to_owned().into(), value, by: By::User }).into_iter().collect()
            }
            None => fields.find_free(&self.places[ours as usize], &|name| given.is_another(name, ours)),
        }
    }

    /// Whether a record has all marks.
    pub(super) fn is_marked_in(&self, fields: &Fields<'_>) -> bool {
        self.marks.iter().all(|mark| !fields.find(std::slice::from_ref(mark)).is_empty())
    }

    /// Whether a record has all marks, and each field is found where [`by_names`] finds it.
    fn is_form_of(&self, fields: &Fields<'_>, given: &Given) -> bool {
        let same = |ours| {
            let mut by_names: Vec<_> =
                by_names().find(fields, given, ours).into_iter().map(|found| found.name).collect();
            let mut seen = HashSet::new();
            by_names.retain(|name| seen.insert(name.clone()));
            let mine = self.find(fields, given, ours).into_iter().map(|found| found.name);
            mine.filter(|name| seen.contains(name)).eq(by_names)
        };
        self.is_marked_in(fields) && Ours::ALL.into_iter().all(same)
    }
}

/// All forms as `import --forms` shows them.
pub(crate) fn listing() -> String {
    let mut text = String::from(
        "A file is read by the first form that all of its records are of. Places are tried from left to right:\n\
         name, a.b (nested), *_name (the only field that ends so), name_# (numbered fields together).\n\
         --field OURS=THEIRS says where a field lies instead.\n",
    );
    for Known { form, .. } in all() {
        // writing to a String cannot fail
        let _ = writeln!(text, "\n{}: {}", form.name, form.about);
        let marks = if form.marks.is_empty() { "nothing: it is what is of no other form" } else { form.marks };
        text += &row("recognised by", marks, if form.marks.is_empty() { " " } else { ", " });
        for (ours, places) in form.fields {
            text += &row(ours.name(), places, ", ");
        }
        if form.scale != 1.0 {
            text += &row("divided by", &form.scale.to_string(), " ");
        }
    }
    text
}

/// The same for programs: each form with its marks, and with the places of each field of ours, best first.
pub(crate) fn as_json() -> Value {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let form = |Known { form, .. }: &Known| {
        let places = form.fields.iter().map(|(ours, places)| (ours.name().to_owned(), json!(words(places))));
        json!({
            "name": form.name, "about": form.about, "recognised_by": words(form.marks),
            "fields": places.collect::<Map<_, _>>(), "divided_by": form.scale,
        })
    };
    all().map(form).collect()
}

/// A name, and words behind it in lines that fit a page.
fn row(name: &str, words: &str, between: &str) -> String {
    const WIDTH: usize = 100;
    let mut row = format!("  {name:<14}");
    let mut width = row.len();
    for (at, word) in words.split_whitespace().enumerate() {
        if at > 0 {
            row += between;
        }
        if width + word.len() > WIDTH {
            row = format!("{}\n{:16}", row.trim_end(), "");
            width = 16;
        }
        row += word;
        width += word.len() + between.len();
    }
    row + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(records: Value) -> &'static str {
        let Value::Array(records) = records else { panic!("a list") };
        let record = |value: Value| {
            let Value::Object(fields) = value else { panic!("an object") };
            Record { place: String::new(), groups: Vec::new(), fields }
        };
        form_of(&records.into_iter().map(record).collect::<Vec<_>>(), &Given::default()).name()
    }

    #[test]
    fn published_files_are_of_their_forms() {
        for (record, name) in [
            (json!({"question_id": "conv-26:0", "answer": "x", "score": 1, "metric": "judge"}), "lines"),
            (json!({"question_id": "a", "outcome": "scored", "scores": {"judge": 1}, "judgements": []}), "questions"),
            (
                json!({"question": "?", "answer": "gold", "response": "x", "category": "1", "f1_score": 0, "llm_score": 1}),
                "mem0",
            ),
            (json!({"question": "?", "answer": "x", "golden_answer": 2022, "grade": true}), "zep"),
            (json!({"question_id": "e47becba", "hypothesis": "x", "autoeval_label": {"label": true}}), "longmemeval"),
            (
                json!({"question": "?", "answer": "gold", "evidence": [], "category": 2, "m_prediction": "x", "m_f1": 0.5}),
                "locomo",
            ),
            (json!({"sample_id": "conv-26", "qa_index": 0, "category": 2, "grades": [1, 0, 1]}), "grades"),
            (
                json!({"question_id": "locomo_0_qa0", "question": "?", "golden_answer": "y", "generated_answer": "x",
                    "llm_judgments": {"judgment_1": true}, "category": "2"}),
                "evermemos",
            ),
            (json!({"id": "a", "verdict": "yes"}), "names"),
        ] {
            assert_eq!(form(json!([record])), name, "{record}");
        }
    }

    #[test]
    fn a_form_reads_what_names_would_read_or_is_none_of_the_file() {
        let mem0 = json!({"question": "?", "response": "x", "llm_score": 1});
        assert_eq!(form(json!([mem0, {"id": "a", "verdict": "yes"}])), "names", "all records are of the form");
        let mut more = mem0.clone();
        more["prediction"] = json!("y");
        assert_eq!(form(json!([more])), "names", "a field that would be read instead");
        more = mem0.clone();
        more["elapsed"] = json!(3);
        assert_eq!(form(json!([more])), "mem0", "a field that nobody reads");
        assert_eq!(form(json!([])), "names");
    }

    #[test]
    fn all_forms_are_shown_whole() {
        let shown = listing();
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/IMPORT.md");
        let page = std::fs::read_to_string(page).expect("the page lies in the tree");
        for known in all() {
            assert!(
                page.contains(&format!("\n| `{}` |", known.name())),
                "docs/IMPORT.md has no form '{}'",
                known.name()
            );
            assert!(shown.contains(&format!("\n{}: {}", known.name(), known.form.about)), "{shown}");
            let names_a_question = [Ours::QuestionId, Ours::Question, Ours::Index];
            let of = |ours: Ours| !known.places[ours as usize].is_empty();
            let told = as_json();
            let told = told.as_array().and_then(|all| all.iter().find(|form| form["name"] == known.name()));
            let told = told.unwrap_or_else(|| panic!("'{}' is missing", known.name()));
            assert_eq!(told["fields"].as_object().map(Map::len), Some(known.form.fields.len()), "{told}");
            assert!(names_a_question.into_iter().any(of) && (of(Ours::Answer) || of(Ours::Score)), "{}", known.name());
        }
    }
}
