//! Which question of the dataset does a line mean? By its id; else by conversation and place; else by conversation and text.
//!
//! Published files count conversations and questions (`locomo_3_qa17`), or leave ids out and keep the questions of each
//! conversation under its name. Texts repeat, so the k-th occurrence in a file is the k-th of the conversation, where the
//! category does not tell them apart.

use std::collections::{HashMap, HashSet};

use bench_proto::text::one_line;

use super::{ImportError, fields::Line, lookup::plain};

/// Words before the number of a question in ids that count.
const QUESTION_WORDS: [&str; 3] = ["question", "qa", "q"];
/// Characters of a question or an id of a file that are shown.
const MOST_SHOWN: usize = 60;

/// A question of the dataset.
#[derive(Debug, Clone)]
pub(crate) struct KnownQuestion {
    /// The dataset's id of it, such as `conv-26:17`.
    pub(crate) id: String,
    /// Its text; may be left out when every line has an id of the dataset.
    pub(crate) text: String,
    /// The dataset's name of its category.
    pub(crate) category: String,
}

/// A conversation of the dataset.
#[derive(Debug, Clone)]
pub(crate) struct KnownBank {
    /// The dataset's id of it, such as `conv-26`.
    pub(crate) bank_id: String,
    /// Its questions in the dataset's order.
    pub(crate) questions: Vec<KnownQuestion>,
}

/// The dataset's questions, ready to be looked up.
pub(crate) struct Resolver<'a> {
    banks: &'a [KnownBank],
    by_id: HashMap<&'a str, (usize, usize)>,
    by_text: HashMap<(usize, &'a str), Vec<usize>>,
    /// By the letters and digits of the text, for files that changed quotes or blanks.
    by_letters: HashMap<(usize, String), Vec<usize>>,
    /// Questions that were found by their text.
    taken: HashSet<(usize, usize)>,
    /// The run whose questions they are: a part of the dataset, in which places mean nothing.
    run: Option<&'a str>,
    /// Lines that name a conversation and a place in it, whatever id they have.
    by_place: Foreign,
    /// Lines that were found by an id that counts, and those that were found by a text, though they have an id.
    by_number: Foreign,
    by_words: Foreign,
}

/// How a question was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// The dataset's own id.
    Id,
    /// An id that counts, such as `locomo_3_qa17`.
    Number,
    /// The conversation that it names, and the number of the question in it.
    Place,
    /// The words of its question.
    Text,
}

/// Lines that were found otherwise than by an id of the dataset.
#[derive(Debug, Default)]
struct Foreign {
    n: u64,
    /// Those of them that have no text which could agree.
    without_text: u64,
    /// What the first of them says, and what it was taken for.
    first: Option<(String, String)>,
}

impl Foreign {
    fn add(&mut self, line: &Line, given: &str, id: &str) {
        self.n += 1;
        self.without_text += u64::from(line.text.is_none());
        if self.first.is_none() {
            self.first = Some((one_line(given).chars().take(MOST_SHOWN).collect(), id.to_owned()));
        }
    }

    /// How they were read: what is said of one, or of many. Nothing where there are none.
    fn say(&self, one: &str, many: &str) -> Option<String> {
        let (given, id) = self.first.as_ref()?;
        Some(match self.n {
            1 => format!("1 {one}: {given} = {id}"),
            n => format!("{n} {many}; first: {given} = {id}"),
        })
    }
}

impl<'a> Resolver<'a> {
    /// Looks among the questions of a run alone. It has a part of the dataset's: a number says nothing of which is meant.
    pub(crate) fn of_run(run: &'a str, banks: &'a [KnownBank]) -> Self {
        Self { run: Some(run), ..Self::new(banks) }
    }

    pub(crate) fn new(banks: &'a [KnownBank]) -> Self {
        let mut by_id = HashMap::new();
        let mut by_text: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
        let mut by_letters: HashMap<(usize, String), Vec<usize>> = HashMap::new();
        for (bank, known) in banks.iter().enumerate() {
            for (place, question) in known.questions.iter().enumerate() {
                by_id.insert(question.id.as_str(), (bank, place));
                by_text.entry((bank, question.text.trim())).or_default().push(place);
                by_letters.entry((bank, plain(&question.text))).or_default().push(place);
            }
        }
        Self {
            banks,
            by_id,
            by_text,
            by_letters,
            taken: HashSet::new(),
            run: None,
            by_place: Foreign::default(),
            by_number: Foreign::default(),
            by_words: Foreign::default(),
        }
    }

    /// Whether a name is a question's id, of the dataset or one that counts with a word (`locomo_3_qa17`).
    pub(crate) fn is_question(&self, name: &str) -> bool {
        let worded = || {
            let before = trailing_number(name).map(|(before, _)| before.to_lowercase());
            before.is_some_and(|before| QUESTION_WORDS.iter().any(|word| before.ends_with(word)))
        };
        self.by_id.contains_key(name) || (worded() && self.counted(name, None).is_some())
    }

    /// The dataset's id of the question that a line means.
    ///
    /// # Errors
    /// The line's place and what ids look like.
    pub(crate) fn resolve(&mut self, line: &Line) -> Result<String, ImportError> {
        let ((bank, place), by) = self.find(line).ok_or_else(|| self.unknown(line))?;
        let KnownBank { bank_id, questions } = &self.banks[bank];
        let id = questions[place].id.clone();
        match by {
            By::Id => {}
            By::Number => self.by_number.add(line, line.id.as_deref().unwrap_or_default(), &id),
            By::Place => {
                // of its names the one that was read: others may be no conversation's
                let named = line.banks.iter().find(|name| self.bank(name) == Some(bank)).unwrap_or(bank_id);
                self.by_place.add(line, &format!("{named}, {place}"), &id);
            }
            // a line without an id has nothing that could have been read as something else
            By::Text => {
                if let Some(given) = &line.id {
                    self.by_words.add(line, given, &id);
                }
            }
        }
        Ok(id)
    }

    /// How the questions of lines were found whose ids are not the dataset's; nothing where all have one.
    pub(crate) fn say(&self) -> Option<String> {
        let mut how = "read as numbers of the conversation (or its id) and of the question, counted from 0".to_owned();
        how.push_str(match self.by_number.without_text {
            0 => ", with which their texts agree",
            _ => ", as nothing beside them says otherwise",
        });
        let ids = |of: &Foreign, how: &str| {
            of.say(&format!("id is not the dataset's: {how}"), &format!("ids are not the dataset's: {how}"))
        };
        let places = self.by_place.say(
            "question is named by its conversation and its place, counted from 0",
            "questions are named by their conversation and their place, counted from 0",
        );
        let parts = [places, ids(&self.by_number, &how), ids(&self.by_words, "found by the text of the question")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn find(&mut self, line: &Line) -> Option<((usize, usize), By)> {
        // some files keep the question's id where others keep the conversation's
        let ids = line.id.iter().chain(&line.banks);
        if let Some(found) = ids.filter_map(|id| self.by_id.get(id.as_str())).next() {
            return Some((*found, By::Id));
        }
        let text = line.text.as_deref();
        let counted = line.id.as_deref().filter(|_| self.run.is_none()).and_then(|id| self.counted(id, text));
        if let Some(found) = counted {
            return Some((found, By::Number));
        }
        let from_id = line.id.as_deref().and_then(trailing_number).map(|(before, _)| conversation_part(before));
        let banks: Vec<usize> =
            line.banks.iter().map(String::as_str).chain(from_id).filter_map(|name| self.bank(name)).collect();
        let index = line.index.map(|index| index as usize).or_else(|| line.id.as_deref()?.parse().ok());
        if let (None, Some(bank), Some(place)) = (self.run, banks.first(), index)
            && self.fits(*bank, place, text)
        {
            return Some(((*bank, place), By::Place));
        }
        let text = text?.trim();
        let everywhere = || (0..self.banks.len()).collect::<Vec<usize>>();
        // a text that only one conversation has says enough
        let found = self.holding(&banks, text).into_iter().next().or_else(|| {
            let mut holders = self.holding(&everywhere(), text).into_iter();
            holders.next().filter(|_| holders.next().is_none())
        });
        let (bank, places) = found?;
        self.next_of(bank, places, line.category.as_deref()).map(|found| (found, By::Text))
    }

    /// The conversations with a text, and where it stands in them.
    fn holding(&self, banks: &[usize], text: &str) -> Vec<(usize, Vec<usize>)> {
        let exact = |bank: &usize| Some((*bank, self.by_text.get(&(*bank, text))?.clone()));
        let found: Vec<_> = banks.iter().filter_map(exact).collect();
        let letters = plain(text);
        if !found.is_empty() || letters.is_empty() {
            return found;
        }
        let loose = |bank: &usize| Some((*bank, self.by_letters.get(&(*bank, letters.clone()))?.clone()));
        banks.iter().filter_map(loose).collect()
    }

    /// The first of some places that no line has taken, of the line's category when it has one.
    fn next_of(&mut self, bank: usize, places: Vec<usize>, category: Option<&str>) -> Option<(usize, usize)> {
        let mut free = places.into_iter().filter(|place| !self.taken.contains(&(bank, *place))).peekable();
        let first = *free.peek()?;
        let category = category.map(plain);
        let of_category = |place: &usize| Some(plain(&self.banks[bank].questions[*place].category)) == category;
        let place = free.find(of_category).unwrap_or(first);
        self.taken.insert((bank, place));
        Some((bank, place))
    }

    /// An id that counts: `<conversation><separator>[qa|q|question]<place>`.
    fn counted(&self, id: &str, text: Option<&str>) -> Option<(usize, usize)> {
        let (before, place) = trailing_number(id)?;
        let bank = self.bank(conversation_part(before))?;
        self.fits(bank, place, text).then_some((bank, place))
    }

    /// A conversation by its id, by the number at the end of a name, counted from 0, or by the number of its own id.
    fn bank(&self, name: &str) -> Option<usize> {
        let by = |same: &dyn Fn(&str) -> bool| self.banks.iter().position(|bank| same(&bank.bank_id));
        let letters = plain(name);
        let number = trailing_number(name).map(|(_, number)| number).filter(|_| !self.runs_into_one(name));
        by(&|id| id.eq_ignore_ascii_case(name))
            .or_else(|| by(&|id| plain(id) == letters))
            .or_else(|| number.filter(|number| *number < self.banks.len()))
            .or_else(|| {
                let number = number?;
                let mut same = (0..self.banks.len())
                    .filter(|bank| trailing_number(&self.banks[*bank].bank_id).is_some_and(|(_, own)| own == number));
                same.next().filter(|_| same.next().is_none())
            })
    }

    /// Whether a name is the id of a conversation behind letters that are none of it (`zzzconv-26`): what it names is something else,
    /// whatever its number is.
    fn runs_into_one(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.banks.iter().any(|bank| {
            let id = bank.bank_id.to_lowercase();
            // `n1` ends words, `conv-26` does not
            let letters = id.chars().take_while(|c| c.is_alphabetic()).count();
            let is_a_name = letters >= 3 && id.contains(|c: char| !c.is_alphanumeric());
            let before = name.strip_suffix(id.as_str()).filter(|_| is_a_name);
            before.is_some_and(|before| before.ends_with(char::is_alphabetic))
        })
    }

    /// Whether a place exists and, when the line has a text, holds that question.
    fn fits(&self, bank: usize, place: usize, text: Option<&str>) -> bool {
        let known = self.banks[bank].questions.get(place).map(|question| question.text.as_str());
        let same = |known: &str, text: &str| known.trim() == text.trim() || plain(known) == plain(text);
        known.is_some_and(|known| text.is_none_or(|text| known.is_empty() || same(known, text)))
    }

    fn unknown(&self, line: &Line) -> ImportError {
        let what = match (&line.id, &line.text, self.run) {
            (Some(id), _, Some(run)) => {
                format!(
                    "question id '{id}' is none of run {run}: its sample leaves the question out, or the dataset has none"
                )
            }
            (Some(id), _, None) => format!("question id '{id}' is not in the dataset"),
            (None, Some(text), _) => {
                let short: String = text.chars().take(MOST_SHOWN).collect();
                format!("the question '{short}' is not in the dataset, or in more than one conversation")
            }
            (None, None, _) => "no such question in the dataset".to_owned(),
        };
        let example = self.banks.first().and_then(|bank| bank.questions.first()).map_or("", |question| &question.id);
        ImportError::at(&line.place, format!("{what}; ids look like '{example}'"))
    }
}

/// What stands before the number of a question, without the word for one.
fn conversation_part(before: &str) -> &str {
    const SEPARATORS: [char; 6] = ['_', '-', ':', '/', '.', ' '];
    let before = before.trim_end_matches(SEPARATORS);
    let cut = |word: &&str| {
        let at = before.len().checked_sub(word.len())?;
        before.get(at..).filter(|end| end.eq_ignore_ascii_case(word)).map(|_| &before[..at])
    };
    QUESTION_WORDS.iter().find_map(cut).unwrap_or(before).trim_end_matches(SEPARATORS)
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
            questions: texts
                .iter()
                .enumerate()
                .map(|(i, text)| KnownQuestion {
                    id: format!("{id}:{i}"),
                    text: (*text).to_owned(),
                    category: if i == 0 { "plain" } else { "odd-one" }.to_owned(),
                })
                .collect(),
        };
        vec![bank("conv-26", &["who?", "when?", "who?"]), bank("conv-30", &["when?", "\"why\" not?"])]
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
            ("conv26_Q1", "conv-26:1"),
            ("30-1", "conv-30:1"),
        ] {
            assert_eq!(id(given).as_deref(), Ok(expected), "{given}");
        }
        let unknown = id("conv-99:0").expect_err("is refused");
        assert!(unknown.starts_with("line 3: ") && unknown.contains("conv-26:0"), "{unknown}");
        let other_text = Line { id: Some("locomo_9_qa1".into()), text: Some("when?".into()), ..Line::default() };
        assert!(by(&banks, other_text).is_err(), "a text of two conversations does not save a wrong place");
        let from_one = Line { id: Some("conv-30_q2".into()), text: Some("\"why\" not?".into()), ..Line::default() };
        assert_eq!(by(&banks, from_one).as_deref(), Ok("conv-30:1"), "the text corrects an id that counts from 1");
        let elsewhere = Line { banks: vec!["conv-30:0".into()], ..Line::default() };
        assert_eq!(by(&banks, elsewhere).as_deref(), Ok("conv-30:0"));
        let number = Line { id: Some("1".into()), banks: vec!["30".into()], ..Line::default() };
        assert_eq!(by(&banks, number).as_deref(), Ok("conv-30:1"));
    }

    #[test]
    fn ids_that_are_not_the_datasets_are_told_with_how_they_were_read() {
        let banks = banks();
        let mut resolver = Resolver::new(&banks);
        let mut read = |id: &str, text: Option<&str>| {
            let line = Line { id: Some(id.into()), text: text.map(str::to_owned), ..Line::default() };
            let found = resolver.resolve(&line).ok();
            (found, resolver.say())
        };
        assert_eq!(read("conv-26:0", None), (Some("conv-26:0".to_owned()), None), "all ids are the dataset's");
        let (found, said) = read("conv-1:0", None);
        assert_eq!(found.as_deref(), Some("conv-30:0"));
        let said = said.expect("is told");
        assert!(said.starts_with("1 id is not the dataset's: read as numbers"), "{said}");
        assert!(said.contains("counted from 0") && said.ends_with(": conv-1:0 = conv-30:0"), "{said}");
        let said = read("x", Some("\"why\" not?")).1.expect("is told");
        assert!(said.ends_with("; 1 id is not the dataset's: found by the text of the question: x = conv-30:1"));

        let mut agreeing = Resolver::new(&banks);
        let line = Line { id: Some("locomo_1_qa0".into()), text: Some("when?".into()), ..Line::default() };
        assert_eq!(agreeing.resolve(&line).ok().as_deref(), Some("conv-30:0"));
        assert!(agreeing.say().is_some_and(|said| said.contains("with which their texts agree")));

        let mut placed = Resolver::new(&banks);
        let line = Line { banks: vec!["conv-26".into()], index: Some(0), ..Line::default() };
        assert_eq!(placed.resolve(&line).ok().as_deref(), Some("conv-26:0"));
        let said = "1 question is named by its conversation and its place, counted from 0: conv-26, 0 = conv-26:0";
        assert_eq!(placed.say().as_deref(), Some(said));

        // an id that is a hash was not read at all, but the names beside it, of which the first is no conversation's
        let mut hashed = Resolver::new(&banks);
        let hash = |id: &str, index| Line {
            id: Some(id.into()),
            banks: vec!["a run".into(), "conv-30".into()],
            index: Some(index),
            ..Line::default()
        };
        assert_eq!(hashed.resolve(&hash("7be1c0de", 1)).ok().as_deref(), Some("conv-30:1"));
        let said = "1 question is named by its conversation and its place, counted from 0: conv-30, 1 = conv-30:1";
        assert_eq!(hashed.say().as_deref(), Some(said));
        assert_eq!(hashed.resolve(&hash("f00dfeed", 0)).ok().as_deref(), Some("conv-30:0"));
        let said = hashed.say().expect("is told");
        assert!(said.starts_with("2 questions are named by their conversation and their place, counted"), "{said}");
        assert!(said.ends_with("; first: conv-30, 1 = conv-30:1"), "{said}");
        // a number beside a conversation is a place too
        let mut numbered = Resolver::new(&banks);
        let line = Line { id: Some("1".into()), banks: vec!["30".into()], ..Line::default() };
        assert_eq!(numbered.resolve(&line).ok().as_deref(), Some("conv-30:1"));
        assert!(numbered.say().is_some_and(|said| said.ends_with("counted from 0: 30, 1 = conv-30:1")));
    }

    #[test]
    fn an_id_behind_letters_that_are_none_of_it_is_another() {
        let banks = [0, 1].map(|number| KnownBank { bank_id: format!("sim-1-{number}"), ..banks().remove(0) });
        let id = |id: &str| by(&banks, Line { id: Some(id.into()), ..Line::default() });
        assert!(id("zzzsim-1-1:0").is_err() && id("ZZZSIM-1-1_qa0").is_err());
        for read in ["locomo_1_qa0", "locomo_sim-1-1:0", "user_1:0"] {
            assert!(id(read).is_ok(), "{read}");
        }
        let short = [0, 1].map(|number| KnownBank { bank_id: format!("n{number}"), ..self::banks().remove(0) });
        assert!(by(&short, Line { id: Some("conversation1_q0".into()), ..Line::default() }).is_ok());
    }

    #[test]
    fn a_question_that_a_run_did_not_ask_is_told_as_such_and_never_counted() {
        let mut banks = banks();
        banks[0].questions.remove(0);
        let mut resolver = Resolver::of_run("mine", &banks);
        let mut id = |id: &str| {
            let line = Line { place: "record 1".into(), id: Some(id.into()), ..Line::default() };
            resolver.resolve(&line).map_err(|e| e.to_string())
        };
        assert_eq!(id("conv-26:1").as_deref(), Ok("conv-26:1"));
        let refused = id("conv-26:0").expect_err("another question is at that place");
        assert!(refused.contains("'conv-26:0' is none of run mine: its sample leaves the question out"), "{refused}");
    }

    #[test]
    fn only_ids_are_taken_for_names_of_questions() {
        let banks = banks();
        let resolver = Resolver::new(&banks);
        for (name, is) in [
            ("conv-26:0", true),
            ("locomo_1_qa1", true),
            ("locomo_1", false),
            ("conv-26", false),
            ("2023-01-01", false),
            ("judgment_1", false),
        ] {
            assert_eq!(resolver.is_question(name), is, "{name}");
        }
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
        assert_eq!(
            next("results", "\u{201c}Why\u{201d}  not").as_deref(),
            Some("conv-30:1"),
            "only one conversation has it"
        );
        assert_eq!(next("results", "when?"), None, "two have it");
    }

    #[test]
    fn categories_tell_equal_texts_apart() {
        let banks = banks();
        let mut resolver = Resolver::new(&banks);
        let mut next = |category: &str| {
            let (text, category) = (Some("who?".into()), Some(category.into()));
            resolver.resolve(&Line { text, category, banks: vec!["conv-26".into()], ..Line::default() }).ok()
        };
        assert_eq!(next("Odd_One").as_deref(), Some("conv-26:2"));
        assert_eq!(next("Odd_One").as_deref(), Some("conv-26:0"), "what is left");
    }
}
