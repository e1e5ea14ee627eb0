//! Other people's counting, one entry each: so that a figure of theirs can be told from ours, and made again. What they do is theirs;
//! the words of the rubrics are ours, since theirs are not ours to ship.
//!
//! To add one: an entry in [`COUNTINGS`].

use bench_proto::{
    counting::{Counted, CountingSpec, OnFailure},
    profile::{GoldRubrics, OwnRubric, Part, Profile, Style},
    spec::ModelSpec,
};
use serde_json::Value;

use crate::judging::{lenient, official::is_official, rubric};

/// Version of these accounts: raised whenever a figure can change.
pub const VERSION: u32 = 2;

/// End of the names of countings by the rules of a dataset's authors, where the words of the judges' prompts are not theirs.
pub const OUR_WORDS: &str = "-rules-our-words";
/// End of the names of the same in the authors' own words.
const THEIR_WORDS: &str = "-official";

/// LoCoMo's category that most leave out.
const ADVERSARIAL: &[&str] = &["adversarial"];

/// What a judge is told that takes whatever is on the topic for right.
const GENEROUS: &str = "\
You decide whether a system's answer to a question about past conversations is right or wrong, by the expected answer. The \
expected answer is short; the system's may be long. Be generous: as long as the answer touches on the same topic as the expected \
one, it is right. Of questions about time, a relative expression such as \"last Tuesday\" or \"next month\", or any other notation, \
is right if it means the same date or period as the expected answer.";

/// What the judges of Hindsight and AMB are told besides.
const NOT_MENTIONED: &str = "\
If the expected answer says that something was not mentioned, an answer that says that it is not known is right.";

/// What graders by LongMemEval's kinds are told.
const WHOLE: &str = "\
You decide whether an answer contains the right answer. An equivalent one is right, and so is one with all the steps that lead \
there; one that holds only a part of what is asked is wrong.";
const OFF_BY_ONE: &str = "\
You decide whether an answer contains the right answer. An equivalent one is right, and so is one with all the steps that lead \
there; one that holds only a part of what is asked is wrong. A number of days, weeks or months that is off by one is right.";
const MISSING: &str = "\
You decide whether an answer says that the question cannot be answered, or that the information is missing. One that does is right; \
one that states an answer is wrong.";

/// The texts of a case, as every template has them.
const CASE: &str = "Question: {question}\nExpected answer: {answer}\nAnswer of the system: {response}";
/// The same for rubrics that show the messages on which that rests.
const CASE_WITH_EVIDENCE: &str = "\
Question: {question}\nMessages on which the expected answer rests:\n{evidence}\nExpected answer: {answer}\nAnswer of the system: \
{response}";
/// The same for rubrics that hide what is expected.
const CASE_WITHOUT_KEY: &str = "Question: {question}\nAnswer of the system: {response}";

const LABEL: &str = "\
Give one sentence of reasoning, then CORRECT or WRONG, never both. Reply with JSON: {\"reasoning\": \"...\", \"label\": \"CORRECT\"}";
const IS_CORRECT: &str = "\
Give one sentence of reasoning, then CORRECT or WRONG. Reply with JSON: {\"reasoning\": \"...\", \"is_correct\": \"CORRECT\"}";
const BOOLEAN: &str = "Reply with JSON: {\"reasoning\": \"one sentence\", \"correct\": true} or the same with false.";
const SCORE: &str = "\
Reply with JSON: {\"score\": 1, \"label\": \"correct\", \"explanation\": \"...\"}, or score 0 and label \"incorrect\".";
const YES: &str = "Answer yes or no only.";
const RIGHT: &str = "Reply with RIGHT or WRONG.";

/// By whose rules answers are graded.
#[derive(Debug, Clone, Copy)]
enum Rules {
    /// No model's: the scorer of this name.
    Scorer(&'static str),
    /// One text for all questions.
    One(&'static [&'static str]),
    /// A text for each category.
    ByCategory(&'static [(&'static str, &'static str)]),
    /// Those of the dataset's profile.
    Dataset,
}

/// Somebody's counting.
#[derive(Debug, Clone, Copy)]
pub struct Counting {
    /// Its name in `--count-as`.
    pub name: &'static str,
    /// Whose it is and what sets it apart, in a line.
    pub about: &'static str,
    /// The dataset whose figures are counted so.
    pub dataset: &'static str,
    /// The judge, as `provider:model`; none where any may be named, or none judges.
    pub judge: Option<&'static str>,
    /// Judgements of an answer.
    pub votes: u32,
    without: &'static [&'static str],
    names: &'static [(&'static str, &'static str)],
    rules: Rules,
    /// What the judge is to reply, and by which lenient form that is read; none: as the dataset's rubrics are.
    reply: Option<(&'static str, &'static str)>,
    on_failure: OnFailure,
    counted: Counted,
    departures: &'static [&'static str],
    /// In what a run departs that is graded by a rubric of this name.
    by_rubric: &'static [(&'static str, &'static str)],
}

/// What no entry says is as here.
const PLAIN: Counting = Counting {
    name: "",
    about: "",
    dataset: "locomo",
    judge: None,
    votes: 1,
    without: ADVERSARIAL,
    names: &[],
    rules: Rules::One(&[GENEROUS]),
    reply: None,
    on_failure: OnFailure::Drop,
    counted: Counted::Passes,
    departures: &[],
    by_rubric: &[],
};

/// LongMemEval's by our own words: only the authors' prompts are official, and those a user has to bring.
const LONGMEMEVAL: Counting = Counting {
    name: "longmemeval-rules-our-words",
    about: "the rules of LongMemEval's authors in our words: yes anywhere in the reply, by kind of question",
    dataset: "longmemeval",
    judge: Some("openai:gpt-4o-2024-08-06"),
    without: &[],
    rules: Rules::Dataset,
    reply: Some((YES, "yes-anywhere")),
    ..PLAIN
};

const MINI: Option<&str> = Some("openai:gpt-4o-mini");
const NO_JSON_MODE: &str = "their request asks for JSON by the server's JSON mode, ours by its words";

/// All of them, one entry each.
pub static COUNTINGS: &[Counting] = &[
    Counting {
        name: "mem0-2025",
        about: "mem0's paper and code of 2025: the label CORRECT, in this case",
        judge: MINI,
        reply: Some((LABEL, "mem0-label")),
        departures: &[
            NO_JSON_MODE,
            "a reply that is no JSON ends their program; here it is asked for again, and then the question leaves the denominator",
            "the paper's figure is a mean over several runs, answers included; this is one run",
            "BLEU-1 and an F1 over sets of unstemmed words stand beside their figure; neither is made here",
        ],
        ..PLAIN
    },
    Counting {
        name: "memmachine",
        about: "MemMachine: as mem0, the label trimmed and of any case",
        judge: MINI,
        reply: Some((LABEL, "memmachine-label")),
        on_failure: OnFailure::Wrong,
        departures: &[NO_JSON_MODE, "they ask a second time before a failure is wrong; here --retries says how often"],
        ..PLAIN
    },
    Counting {
        name: "evermemos",
        about: "EverMemOS: three judgements, the total their mean, categories by majority, every failure wrong",
        judge: MINI,
        votes: 3,
        reply: Some((LABEL, "evermemos-label")),
        on_failure: OnFailure::Wrong,
        counted: Counted::MeanOfRuns,
        departures: &["their prompt is a system message and a user's; ours is one message"],
        ..PLAIN
    },
    Counting {
        name: "zep",
        about: "Zep: is_correct of a structured reply, of any case",
        judge: MINI,
        reply: Some((IS_CORRECT, "zep-is-correct")),
        departures: &[
            "their reply is held to a schema by the server, ours to its words",
            "their figures are means of several full runs, since December 2025 of ten, answers included; this is one run",
        ],
        ..PLAIN
    },
    Counting {
        name: "hindsight",
        about: "Hindsight: a truth value; failures leave the total and are wrong in their category",
        rules: Rules::One(&[GENEROUS, NOT_MENTIONED]),
        reply: Some((BOOLEAN, "hindsight-boolean")),
        on_failure: OnFailure::DropFromTotal,
        departures: &[NO_JSON_MODE, "they leave out questions whose gold is empty or 0; LoCoMo has none"],
        ..PLAIN
    },
    Counting {
        name: "amb",
        about: "AMB: as Hindsight, by a model of Gemini, with categories under other names",
        judge: Some("openai:gemini-2.5-flash-lite"),
        names: &[("multi-hop", "single-hop"), ("open-domain", "multi-hop"), ("single-hop", "open-domain")],
        rules: Rules::One(&[GENEROUS, NOT_MENTIONED]),
        reply: Some((BOOLEAN, "hindsight-boolean")),
        on_failure: OnFailure::DropFromTotal,
        departures: &[NO_JSON_MODE],
        ..PLAIN
    },
    Counting {
        name: "memorybench",
        about: "memorybench: all categories, by LongMemEval's rules for types that are not theirs",
        without: &[],
        names: &[
            ("multi-hop", "single-hop"),
            ("temporal", "multi-hop"),
            ("open-domain", "temporal"),
            ("single-hop", "world knowledge"),
        ],
        rules: Rules::ByCategory(&[
            ("multi-hop", WHOLE),
            ("temporal", WHOLE),
            ("open-domain", OFF_BY_ONE),
            ("single-hop", WHOLE),
            ("adversarial", MISSING),
        ]),
        reply: Some((SCORE, "memorybench-score")),
        departures: &["any model may judge there"],
        ..PLAIN
    },
    Counting {
        name: "official",
        about: "LoCoMo's authors: token F1 of all categories, rounded by question, no judge",
        without: &[],
        rules: Rules::Scorer("locomo-f1"),
        counted: Counted::RoundedScore,
        departures: &[
            "their script stops at adversarial questions of the published file; here the adversarial answer takes the place of the missing one",
            "their prompts ask for an approximate date and offer adversarial questions as a choice of two; ours do neither",
        ],
        ..PLAIN
    },
    Counting {
        name: "longmemeval-official",
        about: "LongMemEval's authors in their own words (--judge-prompts): yes anywhere in the reply, by kind of question",
        ..LONGMEMEVAL
    },
    LONGMEMEVAL,
    Counting {
        name: "beam-rules-our-words",
        about: "the rules of BEAM's authors in our words: each line 0, ½ or 1, an order by tau-b",
        dataset: "beam",
        without: &[],
        rules: Rules::Dataset,
        counted: Counted::Score,
        departures: &[
            "replies are read strictly",
            "their total is the mean of the chats, here it is that of the questions: the same where every chat is asked as many",
        ],
        by_rubric: &[
            (
                "judge-lines",
                "their judge never sees the question and their sum cuts a half to 0: here it sees it, and a half is a half \
                 (beam.judge_without_question and beam.judge_without_halves make both mistakes)",
            ),
            (
                "judge-lines-whole",
                "their judge never sees the question, here it does (beam.judge_without_question makes the mistake)",
            ),
            (
                "judge-lines-unasked",
                "their sum cuts a half to 0, here it is a half (beam.judge_without_halves makes the mistake)",
            ),
        ],
        ..PLAIN
    },
    Counting {
        name: "convomem-rules-our-words",
        about: "the rules of ConvoMem's authors in our words: 'right' and not 'wrong' in the reply, by kind of question",
        dataset: "convomem",
        judge: Some("openai:gemini-2.5-flash"),
        without: &[],
        rules: Rules::Dataset,
        reply: Some((RIGHT, "convomem-right-wrong")),
        ..PLAIN
    },
];

/// The counting of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Counting> {
    COUNTINGS.iter().find(|counting| counting.name == name)
}

/// The counting of a dataset's authors, where it is known; `dataset` is without a variant. It is in our words, and
/// [`in_words_of`](Counting::in_words_of) finds that in theirs.
#[must_use]
pub fn canonical(dataset: &str) -> Option<&'static Counting> {
    let is_authors = |name: &str| name == "official" || name.ends_with(OUR_WORDS);
    COUNTINGS.iter().find(|counting| counting.dataset == dataset && is_authors(counting.name))
}

impl Counting {
    /// This counting as it is named where a profile grades: official in the authors' words, whose checksums are known, and by no
    /// other name.
    #[must_use]
    pub fn in_words_of(&'static self, profile: &Profile) -> &'static Self {
        let (from, to) = if is_official(profile) { (OUR_WORDS, THEIR_WORDS) } else { (THEIR_WORDS, OUR_WORDS) };
        let other = self.name.strip_suffix(from).and_then(|dataset| find(&format!("{dataset}{to}")));
        other.unwrap_or(self)
    }

    /// Whether its judge takes whatever is on the topic for right.
    #[must_use]
    pub fn is_generous(&self) -> bool {
        matches!(self.rules, Rules::One(rules) if rules.contains(&GENEROUS))
    }

    /// Whether its judge is told what the dataset's authors tell theirs, in their own words.
    #[must_use]
    pub fn is_in_authors_words(&self) -> bool {
        self.name.ends_with(THEIR_WORDS)
    }

    /// The scorer that counts, where no model judges.
    #[must_use]
    pub const fn scorer(&self) -> Option<&'static str> {
        match self.rules {
            Rules::Scorer(name) => Some(name),
            _ => None,
        }
    }

    /// A dataset's profile with its rules in place of the profile's.
    #[must_use]
    pub fn profile(&self, profile: &Profile) -> Profile {
        let without = self.without.iter().map(|name| (*name).to_owned()).collect();
        let mut counted = Profile { headline: Part { without }, only_rubric: None, ..profile.clone() };
        let Some((reply, parser)) = self.reply else { return counted };
        let own = |rules: String| OwnRubric { rules, parser: Some(parser.to_owned()), ..OwnRubric::default() };
        let hiding = |hides_reference, own: OwnRubric| OwnRubric { hides_reference, ..own };
        match self.rules {
            Rules::Scorer(_) => {}
            Rules::One(rules) => {
                let name = format!("judge-{}", self.name);
                let text = [rules.join("\n").as_str(), CASE, reply].join("\n\n");
                counted.rubrics.insert(name.clone(), own(text));
                counted.categories.values_mut().for_each(|rules| rules.rubric = Some(name.clone()));
                counted.by_gold = GoldRubrics::default();
            }
            Rules::ByCategory(texts) => {
                for (category, text) in texts {
                    let Some(rules) = counted.categories.get_mut(*category) else { continue };
                    let name = format!("judge-{}-{category}", self.name);
                    counted.rubrics.insert(name.clone(), own([text, CASE, reply].join("\n\n")));
                    rules.rubric = Some(name);
                }
                counted.by_gold = GoldRubrics::default();
            }
            Rules::Dataset => {
                let read = |name: &str| format!("{name}-{parser}");
                // words of others come with their parser
                let is_theirs = |name: &str| profile.rubrics.get(name).is_some_and(|own| own.parser.is_some());
                for name in profile.rubric_names().into_iter().filter(|name| !is_theirs(name)) {
                    let Ok(rubric) = rubric::find(profile, name) else { continue };
                    let hides = rubric.hides_reference();
                    let text = format!(
                        "You decide whether an answer is right, by these rules:\n{}\n\n{}\n\n{reply}",
                        rubric.rules().trim_end(),
                        match (hides, rubric.shows_evidence()) {
                            (true, _) => CASE_WITHOUT_KEY,
                            (false, true) => CASE_WITH_EVIDENCE,
                            (false, false) => CASE,
                        },
                    );
                    // a gold record may name it
                    let kept = profile.by_question.contains(name);
                    counted.rubrics.insert(if kept { name.to_owned() } else { read(name) }, hiding(hides, own(text)));
                }
                let renamed = |name: &mut Option<String>| {
                    if let Some(known) =
                        name.as_mut().filter(|known| !profile.by_question.contains(known.as_str()) && !is_theirs(known))
                    {
                        *known = read(known);
                    }
                };
                counted.categories.values_mut().for_each(|rules| renamed(&mut rules.rubric));
                renamed(&mut counted.by_gold.criteria);
                renamed(&mut counted.by_gold.abstain);
            }
        }
        counted
    }

    /// What the spec of a run says of it, with what the run does otherwise; `profile` is that by which it is graded.
    #[must_use]
    pub fn spec(&self, metric: &str, judges: &[ModelSpec], votes: u32, profile: &Profile) -> CountingSpec {
        let mut departures: Vec<String> = Vec::new();
        if self.scorer().is_none() {
            let theirs = is_official(profile);
            let ours = if theirs { "the words" } else { "the words of the rubric are ours, and so are those" };
            departures.push(format!("{ours} that ask for answers{}", if theirs { " are ours" } else { "" }));
        }
        departures.push(format!(
            "answers are asked for in {}, theirs by a prompt and a limit of their own",
            asked_for(profile)
        ));
        departures.extend(self.departures.iter().map(|line| (*line).to_owned()));
        let grades_by = profile.rubric_names();
        let by_rubric = self.by_rubric.iter().filter(|(rubric, _)| grades_by.contains(rubric));
        departures.extend(by_rubric.map(|(_, line)| (*line).to_owned()));
        if let (Some(theirs), Some(ours)) = (self.judge, judges.first().map(ModelSpec::display))
            && theirs.split_once(':').map(|(_, model)| model) != ours.split_once(':').map(|(_, model)| model)
        {
            departures.push(format!("the judge is {ours}, theirs is {theirs}"));
        }
        for judge in judges.iter().take(1) {
            let temperature = judge.params.get("temperature").and_then(Value::as_f64);
            if temperature != Some(0.0) {
                departures.push("the judge's temperature is not 0".to_owned());
            }
        }
        if !judges.is_empty() && votes != self.votes {
            departures.push(format!("{votes} judgements of an answer, theirs are {}", self.votes));
        }
        CountingSpec {
            name: self.name.to_owned(),
            version: VERSION,
            metric: metric.to_owned(),
            without: self.without.iter().map(|name| (*name).to_owned()).collect(),
            names: self.names.iter().map(|(ours, theirs)| ((*ours).to_owned(), (*theirs).to_owned())).collect(),
            on_failure: self.on_failure,
            counted: self.counted,
            parser: self.reply.map(|(_, parser)| parser.to_owned()),
            departures,
        }
    }

    /// Whether its replies can be read by this build.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.reply.is_none_or(|(_, parser)| lenient::find(parser).is_some())
    }
}

/// How a profile asks for answers: its styles with the words that they allow. Another prompt alone can move a figure by ten points.
fn asked_for(profile: &Profile) -> String {
    let style = |style: &Style| {
        let words =
            style.words.map_or_else(|| "any number of words".to_owned(), |words| format!("at most {words} words"));
        format!("{} ({words})", style.name)
    };
    let styles: Vec<String> = profile.all_styles().map(style).collect();
    format!("our style{} {}", if styles.len() == 1 { "" } else { "s" }, styles.join(", "))
}

/// A way of counting, as it is listed.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Listed {
    /// Its name in `--count-as`.
    pub name: &'static str,
    /// The dataset whose figures are counted so.
    pub dataset: &'static str,
    /// Whose it is and what sets it apart.
    pub about: &'static str,
    /// The judge, as `provider:model`; absent where any may be named, or none judges.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<&'static str>,
    /// Judgements of an answer.
    pub votes: u32,
}

/// All of them, for programs.
#[must_use]
pub fn listed() -> Vec<Listed> {
    let listed =
        |c: &Counting| Listed { name: c.name, dataset: c.dataset, about: c.about, judge: c.judge, votes: c.votes };
    COUNTINGS.iter().map(listed).collect()
}

/// The lines of a list of all: name, dataset and what it is.
#[must_use]
pub fn list() -> Vec<String> {
    let width = COUNTINGS.iter().map(|counting| counting.name.len()).max().unwrap_or(0);
    COUNTINGS.iter().map(|c| format!("{:width$}  {} ({})", c.name, c.about, c.dataset)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use bench_proto::dataset::{Gold, GoldRecord, Question};

    use super::*;
    use crate::judging::{Next, Replies, judge_input::JudgeInput};

    #[test]
    fn entries_are_sound() {
        let mut names = HashSet::new();
        for counting in COUNTINGS {
            assert!(
                names.insert(counting.name) && counting.is_whole() && !counting.about.is_empty(),
                "{}",
                counting.name
            );
            assert!(counting.votes % 2 == 1, "{}: a majority exists", counting.name);
            assert!(counting.judge.is_none_or(|judge| judge.contains(':')), "{}", counting.name);
            assert_eq!(find(counting.name).map(|found| found.name), Some(counting.name));
        }
        assert_eq!(canonical("locomo").map(|found| found.name), Some("official"));
        assert_eq!(canonical("longmemeval").map(|found| found.name), Some("longmemeval-rules-our-words"));
        assert!(canonical("personamem").is_none());
    }

    #[test]
    fn each_grades_every_question_of_locomo_by_one_call_that_its_parser_reads() {
        let profile = Profile::implied();
        for counting in COUNTINGS.iter().filter(|counting| counting.dataset == "locomo" && counting.scorer().is_none())
        {
            let counted = counting.profile(&profile);
            for category in profile.categories.keys().filter(|name| !counting.without.contains(&name.as_str())) {
                let gold = if category == "adversarial" { Gold::Abstain } else { Gold::Text("7 May".to_owned()) };
                let gold = GoldRecord { gold, ..GoldRecord::default() };
                let question = Question { category: category.clone(), text: "When?".to_owned(), ..Question::default() };
                let input = JudgeInput::by_profile(&counted, &question, Some(&gold), "In May").expect("is graded");
                let Next::Ask(calls) = input.rubric.program.next(&input, &Replies::new()) else { panic!("asks") };
                let [call] = &calls[..] else { panic!("{}: {} calls", counting.name, calls.len()) };
                let text = &call.messages.user;
                assert!(call.messages.system.is_empty() && text.contains("When?") && text.contains("In May"), "{text}");
                assert_eq!(Some(call.form.name()), counting.reply.map(|(_, parser)| parser));
                // what the prompt shows as a good reply is one
                let (from, to) = (text.rfind('{').expect("JSON"), text.rfind('}').expect("JSON"));
                let reply = call.form.read(&text[from..=to]);
                assert!(matches!(reply, Ok(crate::judging::Reply::Score { value: 1.0, .. })), "{text}: {reply:?}");
            }
        }
    }

    #[test]
    fn figures_of_others_leave_out_what_they_leave_out_and_say_in_what_a_run_differs() {
        let profile = find("mem0-2025").expect("is there").profile(&Profile::implied());
        assert_eq!(profile.headline.without, ["adversarial"]);
        assert!(find("memorybench").expect("is there").profile(&Profile::implied()).headline.is_whole());
        let judge = |name: &str, temperature: f64| ModelSpec {
            provider: "openai".to_owned(),
            name: name.to_owned(),
            account: String::new(),
            params: BTreeMap::from([("temperature".to_owned(), temperature.into())]),
            prompts: BTreeMap::new(),
            version: 1,
        };
        let evermemos = find("evermemos").expect("is there");
        let graded = evermemos.profile(&Profile::implied());
        let same = evermemos.spec("judge", &[judge("gpt-4o-mini", 0.0)], 3, &graded);
        let other = evermemos.spec("judge", &[judge("another", 0.7)], 1, &graded);
        let asked = "answers are asked for in our style short (any number of words), theirs by a prompt and a limit of their own";
        assert!(same.departures.iter().any(|line| line == asked), "{:?}", same.departures);
        let mem0 = find("mem0-2025").expect("is there").spec("judge", &[], 1, &graded).departures.join("\n");
        assert!(mem0.contains("BLEU-1") && mem0.contains("several runs"), "{mem0}");
        let zep = find("zep").expect("is there").spec("judge", &[], 1, &graded).departures.join("\n");
        assert!(zep.contains("since December 2025 of ten"), "{zep}");
        assert_eq!(other.departures.len(), same.departures.len() + 3, "{:?}", other.departures);
        assert_eq!((same.counted, same.on_failure), (Counted::MeanOfRuns, OnFailure::Wrong));
    }

    #[test]
    fn mistakes_of_the_authors_that_a_run_does_not_make_are_departures() {
        let beam = find("beam-rules-our-words").expect("is there");
        let departures = |rubric: &str| {
            let mut profile = Profile::implied();
            profile.categories.values_mut().for_each(|rules| rules.rubric = Some(rubric.to_owned()));
            let counted = beam.profile(&profile);
            assert_eq!(counted.rubric_names(), profile.rubric_names(), "its rubrics are programs of this build");
            beam.spec("judge", &[], 1, &counted).departures.join("\n")
        };
        for (rubric, sees_the_question, has_halves) in [
            ("judge-lines", true, true),
            ("judge-lines-unasked", false, true),
            ("judge-lines-whole", true, false),
            ("judge-lines-unasked-whole", false, false),
        ] {
            let told = departures(rubric);
            assert!(told.contains("the words of the rubric are ours"), "{told}");
            for (said, is_said) in [
                ("never sees the question", sees_the_question),
                ("beam.judge_without_question", sees_the_question),
                ("cuts a half", has_halves),
                ("beam.judge_without_halves", has_halves),
            ] {
                assert_eq!(told.contains(said), is_said, "{rubric}: {told}");
            }
        }
    }

    #[test]
    fn only_the_authors_words_are_named_official() {
        let ours = Profile::implied();
        for counting in COUNTINGS.iter().filter(|counting| counting.scorer().is_none()) {
            let named = counting.in_words_of(&ours).name;
            assert!(!named.contains("official"), "{named}");
            assert_eq!(named == counting.name, !counting.name.ends_with(THEIR_WORDS), "{named}");
        }
        let label = find("beam-rules-our-words").expect("is there").spec("judge", &[], 1, &ours).label();
        assert_eq!(label, "counted as beam-rules-our-words: not comparable with other counting");
    }

    #[test]
    fn what_a_rubric_hides_it_hides_by_another_parser_too() {
        let convomem = find("convomem-rules-our-words").expect("is there");
        let counted = convomem.profile(&Profile::implied());
        assert_eq!(rubric::check(&counted, ["temporal"], true), Ok(()), "all of its templates are whole");
        let told = |category: &str, gold: Gold| {
            let gold = GoldRecord { gold, ..GoldRecord::default() };
            let question = Question { category: category.to_owned(), text: "When?".to_owned(), ..Question::default() };
            let input = JudgeInput::by_profile(&counted, &question, Some(&gold), "In May").expect("is graded");
            let Next::Ask(calls) = input.rubric.program.next(&input, &Replies::new()) else { panic!("asks") };
            calls[0].messages.user.clone()
        };
        let hidden = told("adversarial", Gold::Unanswerable("a wrong answer".to_owned()));
        assert!(!hidden.contains("a wrong answer") && !hidden.contains("Expected answer"), "{hidden}");
        assert!(told("temporal", Gold::Text("7 May".to_owned())).contains("Expected answer: 7 May"));
    }
}
