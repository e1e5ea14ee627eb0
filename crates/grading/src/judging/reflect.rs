//! One call that grades a reflection: how right it is, how complete, and how much of it is made up.

use bench_proto::{
    dataset::Gold,
    metric::{MetricSpec, Scale},
};

use super::{
    Grade, JudgeCall, Next, Program, Replies, Reply, ReplyForm,
    forms::{Grades, in_two_digits},
    judge_input::{JudgeInput, Rubric, sample_input},
    told::{case, expected, golds, sample, system},
};
use crate::prompts::Messages;

const TASK: &str = "\
You grade answers of a system that was asked to put together what it remembers of past conversations. You get a JSON object with the \
question, the reference, and the system's answer. Grade three things apart, each from 0 to 1.";

const RULES: &str = "\
- Judge the meaning, not the wording: synonyms, paraphrases and another order are fine.
- accuracy: the share of what the answer states on the question that agrees with the reference. 0 for an empty answer.
- completeness: the share of what the reference holds that the answer takes up.
- hallucination: the share of what the answer states of people and events that neither the question nor the reference holds or \
makes plain. Conclusions that follow from them, common knowledge and saying that something is not known are not made up. 0 where \
nothing is made up, 1 where everything is.";

const WRONG: &str =
    "- What the field \"wrong\" lists is false or beside the point: an answer that states it is inaccurate there.";

const REPLY: &str = r#"{"reasoning": "one or two sentences", "scores": {"accuracy": a number from 0 to 1, "completeness": a number from 0 to 1, "hallucination": a number from 0 to 1}}"#;

static FORM: Grades = Grades { name: "reflection", of: &["accuracy", "completeness", "hallucination"] };

/// One call whose reply has three grades. The accuracy is the grade; completeness, and hallucination, of which less is better, are metrics
/// beside it.
#[derive(Debug)]
pub struct Reflection;

/// The program.
pub static REFLECT: Reflection = Reflection;

fn call(input: &JudgeInput<'_>) -> JudgeCall {
    let (reading, reference) = expected(input.gold);
    let wrong = match input.gold {
        Some(Gold::Keywords(rubric)) if !rubric.incorrect_patterns.is_empty() => {
            Some(rubric.incorrect_patterns.join("\n").into())
        }
        _ => None,
    };
    let system = system(TASK, &[reading, RULES, WRONG], REPLY);
    JudgeCall { no: 0, messages: Messages { system, user: case(input, reference, wrong) }, form: &FORM }
}

impl Program for Reflection {
    fn metrics(&self) -> Vec<MetricSpec> {
        vec![
            MetricSpec { name: "completeness".to_owned(), ..MetricSpec::default() },
            MetricSpec { name: "hallucination".to_owned(), scale: Scale::lower(0.0) },
        ]
    }

    fn forms(&self) -> Vec<&'static dyn ReplyForm> {
        vec![&FORM]
    }

    fn calls(&self, _: &JudgeInput<'_>) -> u32 {
        1
    }

    fn next(&self, input: &JudgeInput<'_>, replies: &Replies) -> Next {
        let Some(Reply::Score { parts, .. }) = replies.get(&0) else { return Next::Ask(vec![call(input)]) };
        let is_grade = |(name, _): &&(&str, f64)| *name == "accuracy";
        let score = parts.iter().find(is_grade).map(|(_, accuracy)| *accuracy);
        let others = parts.iter().filter(|part| !is_grade(part));
        let parts = others.map(|(name, grade)| ((*name).to_owned(), *grade)).collect();
        let word = score.map_or_else(|| "no accuracy".to_owned(), in_two_digits);
        Next::Done(Grade { score, parts, word })
    }

    fn sample(&self, rubric: Rubric<'_>) -> Messages {
        let golds = golds();
        let calls: Vec<JudgeCall> = golds.iter().map(|gold| call(&sample_input(rubric, gold))).collect();
        sample(&calls, "(the accuracy)")
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::dataset::KeywordRubric;

    use super::*;
    use crate::judging::testing::{input, run};

    #[test]
    fn accuracy_is_the_grade_and_less_is_made_up_the_better() {
        let gold = Gold::Keywords(KeywordRubric {
            required_keywords: vec!["orchids".to_owned(), "turquoise".to_owned()],
            incorrect_patterns: vec!["choco\"late".to_owned()],
            ..KeywordRubric::default()
        });
        let reply = r#"{"reasoning": "x", "scores": {"accuracy": 0.75, "completeness": 0.5, "hallucination": 0.25}}"#;
        let (grade, calls) = run("judge-reflect", &input(&gold, "Turquoise orchids"), |_| reply.to_owned());
        let parts = vec![("completeness".to_owned(), 0.5), ("hallucination".to_owned(), 0.25)];
        assert_eq!(grade, Grade { score: Some(0.75), parts, word: "0.75".to_owned() });
        let shown: serde_json::Value = serde_json::from_str(&calls[0].messages.user).expect("one object");
        assert_eq!((&shown["reference"], &shown["wrong"]), (&"orchids\nturquoise".into(), &"choco\"late".into()));
        let scales: Vec<(String, bool)> =
            REFLECT.metrics().into_iter().map(|metric| (metric.name, metric.scale.passes(0.0))).collect();
        assert_eq!(scales, [("completeness".to_owned(), false), ("hallucination".to_owned(), true)]);
    }
}
