//! A run among published results of its dataset, for a terminal and as Markdown.

use bench_proto::summary::Interval;
use serde::Serialize;

use crate::{
    blocks::{Block, table},
    figures::{NONE, count, interval, one_line, percent},
    markdown,
    terminal::{self, View},
};

/// Longest name of a system, a model or a source that is shown.
const NAME_WIDTH: usize = 44;

/// How an entry of `differs_in` ends that is about something that nobody says.
pub const NOT_SAID: &str = " not said";

/// Longest note that is shown.
pub(crate) const NOTE_WIDTH: usize = 160;

/// A result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedRow {
    /// Whether it is the run's own.
    pub is_this_run: bool,
    /// The memory system.
    pub system: String,
    /// The part of the dataset that it is about; null: all of it, as far as it is counted.
    pub part: Option<String>,
    /// 0 to 1.
    pub score: f64,
    /// The metric that the score is of; null of others, where it is a share of right answers.
    pub metric: Option<String>,
    /// By whose counting the run's score is, where that is not ours; null of others.
    pub counted_as: Option<String>,
    /// Of the run: conversations like these. Others publish none.
    pub ci95: Option<Interval>,
    /// Questions behind it; null where nobody says.
    pub questions: Option<u64>,
    /// Who answered; null where nobody says.
    pub answerer: Option<String>,
    /// Who judged; null where nobody says, and where no model did.
    pub judge: Option<String>,
    /// Hits asked for; null where nobody says, and where nothing is recalled.
    pub k: Option<u32>,
    /// Runs that the score is the mean of; null where nobody says.
    pub runs: Option<u32>,
    /// Judgements of an answer; null where nobody says, and where no model judged.
    pub votes: Option<u32>,
    /// What the judge goes by; null where nobody says, and where no model judged.
    pub rubric: Option<String>,
    /// What else has to be known to read the score, where somebody says so.
    pub note: Option<String>,
    /// Where it was published; of the run its id.
    pub source: String,
    /// In what it is known to differ from the run, and what is not known of it.
    pub differs_in: Vec<String>,
}

/// A run among what was published on its dataset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedTable {
    /// Name of the dataset.
    pub dataset: String,
    /// The results, each part of the dataset by itself, the best first.
    pub results: Vec<PublishedRow>,
}

/// The results for a terminal.
#[must_use]
pub fn terminal(all: &PublishedTable, view: View) -> String {
    terminal::render_blocks(&document(all), view)
}

/// The results as Markdown.
#[must_use]
pub fn markdown(all: &PublishedTable) -> String {
    markdown::render_blocks(&document(all))
}

fn document(all: &PublishedTable) -> Vec<Block> {
    let text = |text: Option<&String>| text.map_or(NONE.to_owned(), |text| one_line(text, NAME_WIDTH));
    let note = |text: Option<&String>| text.map_or(NONE.to_owned(), |text| one_line(text, NOTE_WIDTH));
    let row = |line: &PublishedRow| {
        let part = line.part.as_ref().map(|part| format!(" ({})", one_line(part, NAME_WIDTH))).unwrap_or_default();
        let mark = if line.is_this_run { "> " } else { "" };
        vec![
            format!("{mark}{}{part}", one_line(&line.system, NAME_WIDTH)),
            percent(line.score),
            interval(line.ci95.as_ref()),
            line.questions.map_or(NONE.to_owned(), count),
            text(line.answerer.as_ref()),
            text(line.judge.as_ref()),
            if line.is_this_run { format!("this run{}", measured(line)) } else { differs(line) },
            note(line.note.as_ref()),
            one_line(&line.source, NAME_WIDTH),
        ]
    };
    let own = all.results.iter().find(|line| line.is_this_run).map(measured).unwrap_or_default();
    let columns = ["System", ">Score", ">95 %", ">Questions", "Answerer", "Judge", "Differs in", "Note", "Source"];
    vec![
        Block::Title(format!("{}: published results beside this run{own}", all.dataset)),
        table(&columns, all.results.iter().map(row).collect()),
        Block::List(vec![
            "figures as their authors printed them, most without an interval; nobody has run them here".to_owned(),
            "a difference means something where nothing differs but the system: another judge alone moves a score by ten points and more"
                .to_owned(),
        ]),
    ]
}

/// In what a result is known to differ, and behind it what is not known of it.
pub(crate) fn differs(line: &PublishedRow) -> String {
    let (unsaid, known): (Vec<&str>, Vec<&str>) =
        line.differs_in.iter().map(String::as_str).partition(|what| what.ends_with(NOT_SAID));
    let unsaid: Vec<&str> = unsaid.iter().map(|what| what.trim_end_matches(NOT_SAID)).collect();
    let unsaid = (!unsaid.is_empty()).then(|| format!("not said: {}", unsaid.join(", ")));
    let known = (!known.is_empty()).then(|| known.join(", "));
    known.into_iter().chain(unsaid).collect::<Vec<_>>().join("; ")
}

/// What the score of a run is of, behind its name.
fn measured(line: &PublishedRow) -> String {
    let metric = line.metric.as_ref().map(|metric| format!(", {}", one_line(metric, NAME_WIDTH)));
    let counted = line.counted_as.as_ref().map(|name| format!(" counted as {}", one_line(name, NAME_WIDTH)));
    format!("{}{}", metric.unwrap_or_default(), counted.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_run_is_marked_and_others_say_what_differs() {
        let line = |is_this_run: bool, system: &str, differs_in: &[&str]| PublishedRow {
            is_this_run,
            system: system.to_owned(),
            part: None,
            score: 0.7,
            metric: is_this_run.then(|| "locomo-f1".to_owned()),
            counted_as: is_this_run.then(|| "official".to_owned()),
            ci95: None,
            questions: (!is_this_run).then_some(1_540),
            answerer: None,
            judge: Some("gpt-4o-mini".to_owned()),
            k: None,
            runs: None,
            votes: None,
            rubric: None,
            note: (!is_this_run)
                .then(|| "10 runs, standard deviation 0.33 points; k counts edges and nodes".to_owned()),
            source: "a paper".to_owned(),
            differs_in: differs_in.iter().map(|text| (*text).to_owned()).collect(),
        };
        let all = PublishedTable {
            dataset: "locomo".to_owned(),
            results: vec![
                line(true, "mine", &[]),
                line(false, "theirs", &["judge", "k not said", "questions", "votes not said"]),
            ],
        };
        let text = markdown(&all);
        assert!(text.contains("> mine") || text.contains("&gt; mine") || text.contains("\\> mine"), "{text}");
        assert!(text.contains("judge, questions; not said: k, votes") && text.contains("1,540"), "{text}");
        assert!(text.contains("0.33 points; k counts edges and nodes") && text.contains("a paper"), "{text}");
        let shown = terminal(&all, View { colour: false, width: None });
        assert_eq!(shown.matches("this run, locomo-f1 counted as official").count(), 2, "title and row: {shown}");
    }
}
