//! One call, a grade for each of several dimensions of an answer.
//!
//! Where a gold is a list of keywords, whether the answer holds them is counted and not judged: *factual accuracy* and
//! *specificity* of such a question are what the scorers of keywords say, and a judge is not asked for them. A gold may give weights
//! to dimensions; then those without a weight are not asked for either. The grade is the mean of the dimensions that were asked for,
//! by their weights; where none is left there is no call and no grade.

use bench_proto::{dataset::Gold, metric::MetricSpec};

use super::{
    Grade, JudgeCall, Next, Program, Replies, Reply, ReplyForm,
    forms::{Grades, in_two_digits},
    judge_input::{JudgeInput, Rubric, sample_input},
    told::{case, expected, golds, sample, system},
};
use crate::prompts::Messages;

/// The dimensions and what a judge is told of each.
const DIMENSIONS_OF_ANSWERS: [(&str, &str); 5] = [
    ("factual_accuracy", "what the answer states is what is expected, and nothing in it contradicts that."),
    ("specificity", "it names the very people, places, numbers and dates that are asked for, not a class of them."),
    (
        "temporal_awareness",
        "it keeps apart what held at different times, gives what held at the time that is asked about, and has the order right. 1 where \
         time plays no part and it makes no mistake of time.",
    ),
    (
        "source_attribution",
        "it ascribes what was said or done to those who said or did it, and names the source where one is asked for. 1 where nobody \
         is to be named and nobody wrong is.",
    ),
    (
        "confidence_calibration",
        "it is as sure as what is expected allows: plain where that is plain, with a reservation where that has one, and it says so \
         where something is not known.",
    ),
];

/// Dimensions that are counted where the gold is a list of keywords.
const COUNTED: [&str; 2] = ["factual_accuracy", "specificity"];

const TASK: &str = "\
You grade the answers of a system that was asked about past conversations. You get a JSON object with the question, the reference \
where there is one, and the system's answer. Grade the answer in the dimensions below, each from 0 to 1 and each by itself.";

const RULES: &str = "\
- Judge the meaning, not the wording.
- 1: without fault in this dimension. 0.5: about half of it is right. 0: wrong throughout, or an empty answer.";

/// The forms by the set of dimensions that they ask for: bit n is dimension n.
static FORMS: [Grades; 32] = {
    const NAMES: [&str; 5] = {
        let mut names = [""; 5];
        let mut n = 0;
        while n < 5 {
            names[n] = DIMENSIONS_OF_ANSWERS[n].0;
            n += 1;
        }
        names
    };
    // the names of each set stand together: a set is a part of the list
    const SETS: [[&str; 5]; 32] = {
        let mut sets = [[""; 5]; 32];
        let mut set = 0;
        while set < 32 {
            let (mut n, mut at) = (0, 0);
            while n < 5 {
                if set & (1 << n) != 0 {
                    sets[set][at] = NAMES[n];
                    at += 1;
                }
                n += 1;
            }
            set += 1;
        }
        sets
    };
    static ALL: [[&str; 5]; 32] = SETS;
    let mut forms = [const { Grades { name: "dimensions", of: &[] } }; 32];
    let mut set = 0;
    while set < 32 {
        forms[set].of = ALL[set].split_at((set as u32).count_ones() as usize).0;
        set += 1;
    }
    forms
};

/// One call whose reply grades the dimensions that are to be judged.
#[derive(Debug)]
pub struct Dimensions;

/// The program.
pub static DIMENSIONS: Dimensions = Dimensions;

/// The dimensions that are asked for, with their weights.
fn asked(gold: Option<&Gold>) -> Vec<(&'static str, f64)> {
    let names = DIMENSIONS_OF_ANSWERS.iter().map(|(name, _)| *name);
    let Some(Gold::Keywords(rubric)) = gold else { return names.map(|name| (name, 1.0)).collect() };
    let (weights, is_counted) = (&rubric.dimension_weights, !rubric.required_keywords.is_empty());
    let weight = |name: &str| match weights.get(name) {
        _ if is_counted && COUNTED.contains(&name) => 0.0,
        _ if weights.is_empty() => 1.0,
        weight => weight.copied().unwrap_or(0.0),
    };
    names.map(|name| (name, weight(name))).filter(|(_, weight)| weight.is_finite() && *weight > 0.0).collect()
}

fn form(asked: &[(&str, f64)]) -> &'static Grades {
    let bit = |(n, (name, _)): (usize, &(&str, &str))| usize::from(asked.iter().any(|(of, _)| of == name)) << n;
    &FORMS[DIMENSIONS_OF_ANSWERS.iter().enumerate().map(bit).sum::<usize>() % FORMS.len()]
}

fn call(input: &JudgeInput<'_>, asked: &[(&'static str, f64)]) -> JudgeCall {
    let (reading, reference) = expected(input.gold);
    let of = |(name, _): &(&str, f64)| DIMENSIONS_OF_ANSWERS.iter().find(|(known, _)| known == name);
    let rules: Vec<String> = asked.iter().filter_map(of).map(|(name, about)| format!("- {name}: {about}")).collect();
    let fields: Vec<String> = asked.iter().map(|(name, _)| format!("\"{name}\": a number from 0 to 1")).collect();
    let reply = format!(r#"{{"reasoning": "one or two sentences", "scores": {{{}}}}}"#, fields.join(", "));
    let system = system(TASK, &[reading, RULES, &rules.join("\n")], &reply);
    JudgeCall { no: 0, messages: Messages { system, user: case(input, reference, None) }, form: form(asked) }
}

impl Program for Dimensions {
    fn metrics(&self) -> Vec<MetricSpec> {
        DIMENSIONS_OF_ANSWERS
            .iter()
            .map(|(name, _)| MetricSpec { name: (*name).to_owned(), ..MetricSpec::default() })
            .collect()
    }

    fn forms(&self) -> Vec<&'static dyn ReplyForm> {
        // with all of them: a part of it is the same form
        vec![&FORMS[FORMS.len() - 1]]
    }

    fn calls(&self, input: &JudgeInput<'_>) -> u32 {
        u32::from(!asked(input.gold).is_empty())
    }

    fn next(&self, input: &JudgeInput<'_>, replies: &Replies) -> Next {
        let asked = asked(input.gold);
        if asked.is_empty() {
            return Next::Done(Grade { score: None, parts: Vec::new(), word: "nothing to judge".to_owned() });
        }
        let Some(Reply::Score { parts, .. }) = replies.get(&0) else { return Next::Ask(vec![call(input, &asked)]) };
        let of = |(name, weight): &(&str, f64)| {
            let (_, grade) = parts.iter().find(|(known, _)| known == name)?;
            Some((grade * weight, *weight))
        };
        let (sum, weights) =
            asked.iter().filter_map(of).fold((0.0, 0.0), |(sum, all), (grade, w)| (sum + grade, all + w));
        let score = (weights > 0.0).then(|| (sum / weights).clamp(0.0, 1.0));
        let word = score.map_or_else(|| "nothing to judge".to_owned(), in_two_digits);
        let parts = parts.iter().map(|(name, grade)| ((*name).to_owned(), *grade)).collect();
        Next::Done(Grade { score, parts, word })
    }

    fn sample(&self, rubric: Rubric<'_>) -> Messages {
        let golds = golds();
        let calls: Vec<JudgeCall> = golds
            .iter()
            .map(|gold| {
                let input = sample_input(rubric, gold);
                call(&input, &asked(input.gold))
            })
            .collect();
        sample(&calls, "(the mean by weights)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bench_proto::dataset::KeywordRubric;

    use super::*;
    use crate::judging::testing::{input, run};

    fn keywords(required: &[&str], weights: &[(&str, f64)]) -> Gold {
        Gold::Keywords(KeywordRubric {
            required_keywords: required.iter().map(|word| (*word).to_owned()).collect(),
            dimension_weights: weights
                .iter()
                .map(|(name, weight)| ((*name).to_owned(), *weight))
                .collect::<BTreeMap<_, _>>(),
            ..KeywordRubric::default()
        })
    }

    fn names(gold: &Gold) -> Vec<&'static str> {
        asked(Some(gold)).into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn what_is_counted_is_not_asked() {
        let judged = ["temporal_awareness", "source_attribution", "confidence_calibration"];
        assert_eq!(names(&Gold::Text("x".to_owned())).len(), 5);
        assert_eq!(names(&keywords(&["15"], &[])), judged);
        assert_eq!(names(&keywords(&[], &[])).len(), 5, "nothing can be counted");
        let weights =
            [("factual_accuracy", 1.0), ("source_attribution", 0.5), ("flavour", 1.0), ("specificity", f64::NAN)];
        assert_eq!(names(&keywords(&["15"], &weights)), ["source_attribution"]);
        assert_eq!(names(&keywords(&[], &weights)), ["factual_accuracy", "source_attribution"]);
        let gold = keywords(&["15"], &[("factual_accuracy", 1.0)]);
        let (grade, calls) = run("judge-dimensions", &input(&gold, "15"), |_| unreachable!());
        assert_eq!((grade.score, calls.len(), DIMENSIONS.calls(&input(&gold, "15"))), (None, 0, 0));
    }

    #[test]
    fn the_grade_is_the_mean_by_weights() {
        let gold = keywords(&["15"], &[("temporal_awareness", 3.0), ("source_attribution", 1.0)]);
        let reply = r#"{"reasoning": "x", "scores": {"temporal_awareness": 1, "source_attribution": 0.2}}"#;
        let (grade, calls) = run("judge-dimensions", &input(&gold, "15 in May"), |_| reply.to_owned());
        let parts = [("temporal_awareness", 1.0), ("source_attribution", 0.2)];
        assert_eq!(grade.parts, parts.map(|(name, score)| (name.to_owned(), score)));
        assert_eq!((grade.score, grade.word.as_str()), (Some(0.8), "0.80"));
        let told = &calls[0].messages.system;
        assert!(told.contains("- source_attribution:") && !told.contains("specificity"), "{told}");
    }

    #[test]
    fn every_set_of_dimensions_has_its_form() {
        for (set, form) in FORMS.iter().enumerate() {
            assert_eq!((form.name, form.of.len()), ("dimensions", set.count_ones() as usize));
            let asked: Vec<(&str, f64)> = form.of.iter().map(|name| (*name, 1.0)).collect();
            assert!(std::ptr::eq(self::form(&asked), form), "{asked:?}");
        }
    }
}
