//! What of a result may be told where the texts of its dataset may not be: ids, figures and verdicts. No question, no expected answer,
//! nothing that was recalled, answered or said about it by a judge, and no message that may quote one of them.

use std::collections::{BTreeMap, BTreeSet};

use super::{JudgementLine, QuestionLine, RetrievedLine, SearchLine, Summary};
use crate::{facts::QuestionFacts, started_again::ENDED_WITH};

impl QuestionLine {
    /// The line without texts. An error keeps its code. What an answer cites may be a text as well as an id: only ids of its hits stay.
    #[must_use]
    pub fn without_texts(self) -> Self {
        let known: BTreeSet<&str> = self.retrieved.iter().map(|hit| hit.id.as_str()).collect();
        let citations = self.citations.iter().filter(|cited| known.contains(cited.as_str())).cloned().collect();
        let hit = |hit: RetrievedLine| RetrievedLine { text: String::new(), details: BTreeMap::new(), ..hit };
        let vote = |vote: JudgementLine| JudgementLine { raw: String::new(), calls: Vec::new(), ..vote };
        let search = |search: SearchLine| SearchLine { query: String::new(), ..search };
        Self {
            question: String::new(),
            gold: None,
            answer: None,
            retrieved: self.retrieved.into_iter().map(hit).collect(),
            searches: self.searches.into_iter().map(search).collect(),
            judgements: self.judgements.into_iter().map(vote).collect(),
            citations,
            error: self.error.as_deref().map(code_of),
            ..self
        }
    }
}

impl QuestionFacts {
    /// The facts without what a failure said, which may quote a reply.
    #[must_use]
    pub fn without_texts(mut self) -> Self {
        if let Some(failure) = &mut self.failure {
            failure.message.clear();
        }
        self
    }
}

impl Summary {
    /// The report without texts: what it says of the dataset's files goes too, for it quotes them. Facts of canaries are made up, and
    /// stay; errors keep their codes, and what a probe lacks is told in words that quote nothing.
    #[must_use]
    pub fn without_texts(mut self) -> Self {
        self.dataset.notes.clear();
        self.error_examples.clear();
        for worst in &mut self.worst {
            (worst.gold, worst.answer) = (None, None);
        }
        if let Some(stored) = &mut self.stored {
            stored.unsaid_examples.clear();
            stored.failure = None;
        }
        if let Some(probe) = &mut self.latency_probe {
            probe.failure = probe.failure.as_deref().map(code_of);
            for at in &mut probe.at_rates {
                at.failure = at.failure.as_deref().map(code_of);
            }
        }
        for outage in &mut self.outages {
            outage.reason = code_of(&outage.reason);
        }
        for warning in &mut self.warnings {
            if let Some(at) = warning.find(ENDED_WITH) {
                warning.truncate(at);
            }
        }
        self
    }
}

/// The code at the beginning of an error, for what follows the colon may quote a text. A sentence of the runner's own has neither code
/// nor colon, and stays.
fn code_of(error: &str) -> String {
    error.split(':').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::summary::{OutageMet, PhaseUsageLine, StoredSummary, TimingLine};

    const SECRET: &str = "The ferry to Kinsale leaves at nine";

    fn line() -> QuestionLine {
        serde_json::from_value(json!({
            "question_id": "q1", "bank_id": "b1", "category": "temporal", "question": SECRET, "gold": SECRET, "answer": SECRET,
            "outcome": "infra_error", "scores": {"judge": 0.5},
            "retrieved": [{
                "id": "t1", "session_id": "s1", "score": 0.9, "text": SECRET, "details": {"summary": SECRET},
            }],
            "searches": [{"query": SECRET, "hits": 1}], "evidence": ["t1"], "citations": ["t1", SECRET, "t9"], "failures": [],
            "judgements": [{"judge": "openai:m", "vote": 0, "verdict": "correct", "raw": SECRET, "calls": [SECRET]}],
            "error": format!("http_500: {SECRET}"), "usage": PhaseUsageLine::default(), "timing_ms": TimingLine::default(), "trace_id": "0", "attempts": 1,
        }))
        .expect("is a line")
    }

    #[test]
    fn a_question_keeps_ids_scores_and_verdicts_and_no_text() {
        let told = line().without_texts();
        let text = serde_json::to_string(&told).expect("serialises");
        assert!(!text.contains("ferry"), "{text}");
        assert_eq!(
            (told.question_id.as_str(), told.scores["judge"], told.error.as_deref()),
            ("q1", 0.5, Some("http_500"))
        );
        assert_eq!((told.retrieved[0].id.as_str(), told.judgements[0].verdict.as_str()), ("t1", "correct"));
        assert_eq!(told.citations, ["t1"], "ids of hits alone");
    }

    #[test]
    fn an_error_keeps_its_code_and_a_sentence_of_our_own_its_words() {
        let sentence = "1 of 4 questions failed in the run and were not asked again";
        assert_eq!(
            (code_of(&format!("timeout: {SECRET}")).as_str(), code_of(sentence).as_str()),
            ("timeout", sentence)
        );
    }

    #[test]
    fn a_report_keeps_its_figures_and_no_text() {
        let golden = include_str!("../../golden/report.v4.json");
        let mut summary: Summary = serde_json::from_str(golden).expect("the golden report is a summary");
        summary.dataset.notes = vec![SECRET.to_owned()];
        summary.error_examples = BTreeMap::from([("http_500".to_owned(), SECRET.to_owned())]);
        for worst in &mut summary.worst {
            (worst.gold, worst.answer) = (Some(SECRET.to_owned()), Some(SECRET.to_owned()));
        }
        summary.stored = Some(StoredSummary {
            unsaid_examples: vec![SECRET.to_owned()],
            failure: Some(SECRET.to_owned()),
            ..StoredSummary::default()
        });
        summary.outages = vec![OutageMet {
            key: "m (account openai)".to_owned(),
            from: "2026-01-01T00:00:00Z".to_owned(),
            to: None,
            reason: format!("http_503: {SECRET}"),
            calls_held: 1,
        }];
        if let Some(probe) = &mut summary.latency_probe {
            probe.failure = Some(format!("timeout: {SECRET}"));
        }
        summary.warnings = vec![format!("a process was started again{ENDED_WITH}KeyError: {SECRET}")];
        assert!(!summary.worst.is_empty() && summary.latency_probe.is_some(), "the golden report has some");
        let told = summary.clone().without_texts();
        assert!(!serde_json::to_string(&told).expect("serialises").contains("ferry"));
        let failure = told.latency_probe.as_ref().and_then(|probe| probe.failure.as_deref());
        assert_eq!(told.warnings, ["a process was started again"]);
        assert_eq!((failure, told.outages[0].reason.as_str()), (Some("timeout"), "http_503"));
        assert_eq!(
            (&told.headline, &told.scores, &told.result_digest),
            (&summary.headline, &summary.scores, &summary.result_digest)
        );
    }
}
