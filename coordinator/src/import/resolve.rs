//! Which question of the dataset does a line mean? By its id; else by conversation and place; else by conversation and text.
//!
//! Published files count conversations and questions (`locomo_3_qa17`), or leave ids out and keep the questions of each
//! conversation under its name. Texts repeat, so the k-th occurrence in a file is the k-th of the conversation.

use std::collections::HashMap;

use super::{ImportError, fields::Line};

/// A conversation of the dataset.
#[derive(Debug, Clone)]
pub(crate) struct KnownBank {
    /// Its id.
    pub(crate) bank_id: String,
    /// (id, text) of its questions in the dataset's order; texts may be left out when every line has an id of the dataset.
    pub(crate) questions: Vec<(String, String)>,
}

/// The dataset's questions, ready to be looked up.
pub(crate) struct Resolver<'a> {
    banks: &'a [KnownBank],
    by_id: HashMap<&'a str, (usize, usize)>,
    by_text: HashMap<(usize, &'a str), Vec<usize>>,
    /// How often a text of a bank was taken.
    taken: HashMap<(usize, String), usize>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(banks: &'a [KnownBank]) -> Self {
        let mut by_id = HashMap::new();
        let mut by_text: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
        for (bank, known) in banks.iter().enumerate() {
            for (place, (id, text)) in known.questions.iter().enumerate() {
                by_id.insert(id.as_str(), (bank, place));
                by_text.entry((bank, text.trim())).or_default().push(place);
            }
        }
        Self { banks, by_id, by_text, taken: HashMap::new() }
    }

    /// The dataset's id of the question that a line means.
    ///
    /// # Errors
    /// The line's place and what ids look like.
    pub(crate) fn resolve(&mut self, line: &Line) -> Result<String, ImportError> {
        let (bank, place) = self.find(line).ok_or_else(|| self.unknown(line))?;
        Ok(self.banks[bank].questions[place].0.clone())
    }

    fn find(&mut self, line: &Line) -> Option<(usize, usize)> {
        if let Some(id) = &line.id {
            if let Some(found) = self.by_id.get(id.as_str()) {
                return Some(*found);
            }
            if let Some(found) = self.counted(id, line.text.as_deref()) {
                return Some(found);
            }
        }
        let bank = line.banks.iter().find_map(|name| self.bank(name));
        if let (Some(bank), Some(place)) = (bank, line.index)
            && self.fits(bank, place as usize, line.text.as_deref())
        {
            return Some((bank, place as usize));
        }
        let text = line.text.as_deref()?.trim();
        match bank.filter(|bank| self.by_text.contains_key(&(*bank, text))) {
            Some(bank) => self.next_of_text(bank, text),
            None => {
                // a text that only one conversation has says enough
                let mut holders = (0..self.banks.len()).filter(|bank| self.by_text.contains_key(&(*bank, text)));
                let only = holders.next().filter(|_| holders.next().is_none())?;
                self.next_of_text(only, text)
            }
        }
    }

    fn next_of_text(&mut self, bank: usize, text: &str) -> Option<(usize, usize)> {
        let places = self.by_text.get(&(bank, text))?;
        let taken = self.taken.entry((bank, text.to_owned())).or_default();
        *taken += 1;
        places.get(*taken - 1).map(|place| (bank, *place))
    }

    /// An id that counts: `<conversation><separator>[qa|q|question]<place>`.
    fn counted(&self, id: &str, text: Option<&str>) -> Option<(usize, usize)> {
        const SEPARATORS: [char; 6] = ['_', '-', ':', '/', '.', ' '];
        let (before, place) = trailing_number(id)?;
        let before = before.trim_end_matches(SEPARATORS);
        let before = ["question", "qa", "q"].iter().find_map(|word| before.strip_suffix(word)).unwrap_or(before);
        let bank = self.bank(before.trim_end_matches(SEPARATORS))?;
        self.fits(bank, place, text).then_some((bank, place))
    }

    /// A conversation by its id, or by the number at the end of a name, counted from 0.
    fn bank(&self, name: &str) -> Option<usize> {
        let exact = self.banks.iter().position(|bank| bank.bank_id.eq_ignore_ascii_case(name));
        exact.or_else(|| trailing_number(name).map(|(_, number)| number).filter(|number| *number < self.banks.len()))
    }

    /// Whether a place exists and, when the line has a text, holds that question.
    fn fits(&self, bank: usize, place: usize, text: Option<&str>) -> bool {
        let known = self.banks[bank].questions.get(place);
        known.is_some_and(|(_, known)| text.is_none_or(|text| known.is_empty() || known.trim() == text.trim()))
    }

    fn unknown(&self, line: &Line) -> ImportError {
        let what = match (&line.id, &line.text) {
            (Some(id), _) => format!("question id '{id}' is not in the dataset"),
            (None, Some(text)) => {
                let short: String = text.chars().take(60).collect();
                format!("the question '{short}' is not in the dataset, or in more than one conversation")
            }
            (None, None) => "no such question in the dataset".to_owned(),
        };
        let example = self.banks.first().and_then(|bank| bank.questions.first()).map_or("", |(id, _)| id);
        ImportError::at(&line.place, format!("{what}; ids look like '{example}'"))
    }
}

fn trailing_number(text: &str) -> Option<(&str, usize)> {
    let digits = text.len() - text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (before, number) = text.split_at(text.len() - digits);
    number.parse().ok().map(|number| (before, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banks() -> Vec<KnownBank> {
        let bank = |id: &str, texts: &[&str]| KnownBank {
            bank_id: id.to_owned(),
            questions: texts.iter().enumerate().map(|(i, text)| (format!("{id}:{i}"), (*text).to_owned())).collect(),
        };
        vec![bank("conv-26", &["who?", "when?", "who?"]), bank("conv-30", &["when?", "why?"])]
    }

    fn by(banks: &[KnownBank], line: Line) -> Result<String, String> {
        Resolver::new(banks).resolve(&Line { place: "line 3".into(), ..line }).map_err(|e| e.to_string())
    }

    #[test]
    fn ids_of_the_dataset_and_counted_ones() {
        let banks = banks();
        let id = |id: &str| by(&banks, Line { id: Some(id.into()), ..Line::default() });
        for (given, expected) in [
            ("conv-30:1", "conv-30:1"),
            ("locomo_1_qa1", "conv-30:1"),
            ("conv-26_q2", "conv-26:2"),
            ("conv-26_question_2", "conv-26:2"),
            ("CONV-26-0", "conv-26:0"),
        ] {
            assert_eq!(id(given).as_deref(), Ok(expected), "{given}");
        }
        let unknown = id("conv-99:0").expect_err("is refused");
        assert!(unknown.starts_with("line 3: ") && unknown.contains("conv-26:0"), "{unknown}");
        let other_text = Line { id: Some("locomo_1_qa1".into()), text: Some("when?".into()), ..Line::default() };
        assert!(by(&banks, other_text).is_err(), "a text of two conversations does not save a wrong place");
    }

    #[test]
    fn texts_count_within_their_conversation() {
        let banks = banks();
        let mut resolver = Resolver::new(&banks);
        let mut next = |group: &str, text: &str| {
            let line = Line { text: Some(text.into()), banks: vec![group.into()], ..Line::default() };
            resolver.resolve(&line).ok()
        };
        assert_eq!(next("locomo_experiment_user_0", "who?").as_deref(), Some("conv-26:0"));
        assert_eq!(next("locomo_experiment_user_0", "who?").as_deref(), Some("conv-26:2"));
        assert_eq!(next("locomo_experiment_user_0", "who?"), None, "there are only two");
        assert_eq!(next("1", "when?").as_deref(), Some("conv-30:0"));
        assert_eq!(next("results", "why?").as_deref(), Some("conv-30:1"), "only one conversation has it");
        assert_eq!(next("results", "when?"), None, "two have it");
    }
}
