//! What is told of a dataset that was read: of each kind of thing the first ones, and how many more there are, so that a
//! file of which nothing resolves does not fill a report.

use std::collections::BTreeMap;

/// Things of one kind that are named; the others are counted.
const NAMED: usize = 20;

/// Things that do not resolve, or that not everybody expects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes {
    listed: BTreeMap<&'static str, Named>,
    said: BTreeMap<&'static str, Named>,
    /// Whether `am` or `pm` stands behind one of the file's times: the version of whoever reads files of users depends on it.
    pub(crate) has_half_days: bool,
}

#[derive(Debug, Clone, Default)]
struct Named {
    count: usize,
    first: Vec<String>,
}

impl Named {
    fn add(&mut self, which: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(which());
        }
    }

    fn more(&self) -> usize {
        self.count - self.first.len()
    }
}

impl Notes {
    /// One more of a kind, told in one line with the others: `empty haystack (2): a_abs, b_abs`.
    pub(crate) fn add(&mut self, kind: &'static str, which: impl FnOnce() -> String) {
        self.listed.entry(kind).or_default().add(which);
    }

    /// One more of a kind, told in a line of its own.
    pub(crate) fn say(&mut self, kind: &'static str, line: impl FnOnce() -> String) {
        self.said.entry(kind).or_default().add(line);
    }

    /// The notes, kind by kind.
    pub(crate) fn lines(self) -> Vec<String> {
        let listed = self.listed.into_iter().map(|(kind, named)| {
            let more = if named.more() > 0 { format!(", and {} more", named.more()) } else { String::new() };
            format!("{kind} ({}): {}{more}", named.count, named.first.join(", "))
        });
        let said = self.said.into_iter().flat_map(|(kind, named)| {
            let more = (named.more() > 0).then(|| format!("and {} more: {kind}", named.more()));
            named.first.into_iter().chain(more)
        });
        listed.chain(said).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_kind_twenty_are_named_and_the_others_counted() {
        let mut notes = Notes::default();
        for number in 0..2_000 {
            notes.say("evidence that is no turn", || format!("q{number}: evidence names no turn"));
            notes.add("empty haystack", || format!("q{number}"));
        }
        notes.say("dates", || "q1: 'soon' is no date".to_owned());
        let lines = notes.lines();
        assert_eq!(lines.len(), 1 + 1 + 20 + 1);
        assert!(lines[0].starts_with("empty haystack (2000): q0, q1, ") && lines[0].ends_with(", and 1980 more"));
        assert_eq!((lines[1].as_str(), lines[2].as_str()), ("q1: 'soon' is no date", "q0: evidence names no turn"));
        assert_eq!(lines[22], "and 1980 more: evidence that is no turn");
    }
}
