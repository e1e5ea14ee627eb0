//! For datasets whose files are JSON, one object per line: the lines, and banks that grow by them.

use bench_proto::dataset::{Bank, BankContent, Gold, GoldRecord, Question, StreamEntry};

use crate::{DatasetError, files::Files, lines::Lines, loaded::count};

impl Files {
    /// The lines of a file, each a JSON object.
    ///
    /// # Errors
    /// When a line is none of these, with its number.
    pub(crate) fn lines<T: serde::de::DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, DatasetError> {
        let (path, content) = (self.path(name)?.display().to_string(), self.read(name)?);
        Lines::new(path.as_str(), &content[..]).map(|line| line?.json(&path)).collect()
    }
}

/// Banks in the making, in the order of their first entries.
#[derive(Debug, Default)]
pub(crate) struct Banks(pub(crate) Vec<Bank>);

impl Banks {
    fn find(&mut self, bank_id: &str) -> Option<&mut Bank> {
        self.0.iter_mut().find(|bank| bank.content.bank_id == bank_id)
    }

    /// Adds the next entry of a bank's stream.
    pub(crate) fn add(&mut self, bank_id: &str, entry: StreamEntry) {
        if let Some(bank) = self.find(bank_id) {
            bank.content.entries.push(entry);
            return;
        }
        let content = BankContent { bank_id: bank_id.to_owned(), speakers: Vec::new(), entries: vec![entry] };
        self.0.push(Bank { content, questions: Vec::new(), gold: Vec::new() });
    }

    /// Adds a question that is asked when its bank is complete. Its id is the bank's with its number; `evidence` names turns.
    ///
    /// # Errors
    /// When there is no such bank, or no such turn in it.
    pub(crate) fn ask(
        &mut self,
        bank_id: &str,
        category: String,
        text: String,
        gold: Gold,
        evidence: Vec<String>,
    ) -> Result<(), DatasetError> {
        let broken = |place: &str, problem: &str| DatasetError::Broken {
            path: bank_id.to_owned(),
            place: place.to_owned(),
            problem: problem.to_owned(),
        };
        let bank = self.find(bank_id).ok_or_else(|| broken(&text, "asks a bank that has no session"))?;
        let mut evidence_sessions = Vec::new();
        for turn in &evidence {
            let session = bank.content.entries.iter().find(|entry| match entry {
                StreamEntry::Session(session) => session.turns.iter().any(|held| held.id == *turn),
                StreamEntry::Memory(_) | StreamEntry::Update { .. } => entry.id() == turn,
            });
            let id = session.ok_or_else(|| broken(turn, "is evidence, and no turn"))?.id().to_owned();
            if !evidence_sessions.contains(&id) {
                evidence_sessions.push(id);
            }
        }
        let question_id = format!("{bank_id}:{}", bank.questions.len());
        let (index, ask_after) = (count(bank.questions.len()), count(bank.content.entries.len()));
        let record = GoldRecord {
            question_id: question_id.clone(),
            gold,
            evidence_turns: evidence,
            evidence_sessions,
            ..GoldRecord::default()
        };
        bank.gold.push(record);
        let question = Question { question_id, index, category, text, ask_after, ..Question::default() };
        bank.questions.push(question);
        Ok(())
    }
}
