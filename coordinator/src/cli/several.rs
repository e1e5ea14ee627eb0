//! `submit` with several values of one flag: the short form of a matrix. Which flags have several is read from the words as they were
//! typed, so that every cell is a command line of its own.

use std::ffi::OsString;

/// Flags whose values may be several, and their letters.
const FLAGS: [(&str, Option<&str>); 4] =
    [("--dataset", Some("-b")), ("--preset", None), ("--system", Some("-p")), ("--dataset-seed", None)];

/// Flags of every verb that take a value: they may stand before the verb.
const OF_EVERY_VERB: [&str; 5] = ["--store", "--queue", "--config", "--profile", "--set"];

/// A command line with several values of some flags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Several {
    /// Flag without its dashes → values, in the order in which they were typed.
    pub axes: Vec<(String, Vec<String>)>,
    /// All other words.
    pub rest: Vec<OsString>,
}

impl Several {
    /// Looks for flags of `submit` or `estimate` with several values; `None` where each has one at most.
    #[must_use]
    pub(super) fn find(words: &[OsString]) -> Option<Self> {
        if !matches!(verb_of(words)?, "submit" | "estimate") {
            return None;
        }
        let mut axes: Vec<(String, Vec<String>)> = Vec::new();
        let mut rest = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let Some((flag, value)) = word.to_str().and_then(flag_of) else {
                rest.push(word.clone());
                continue;
            };
            let value = match value {
                Some(value) => value.to_owned(),
                None => words.next()?.to_str()?.to_owned(),
            };
            let values = parts(flag, &value);
            match axes.iter_mut().find(|(name, _)| name == flag) {
                Some((_, known)) => known.extend(values),
                None => axes.push((flag.to_owned(), values)),
            }
        }
        axes.iter().any(|(flag, values)| values.len() > 1 || is_all(flag, values)).then_some(Self { axes, rest })
    }

    /// The command line with one value of each flag, by which the verb and all other flags are read. `all` datasets are none.
    #[must_use]
    pub fn first(&self) -> Vec<OsString> {
        let one = |(flag, values): &(String, Vec<String>)| {
            let value = values.first().filter(|_| !is_all(flag, values))?;
            Some(OsString::from(format!("--{flag}={value}")))
        };
        self.rest.iter().cloned().chain(self.axes.iter().filter_map(one)).collect()
    }

    /// Whether every dataset of this machine is meant.
    #[must_use]
    pub fn has_all_datasets(&self) -> bool {
        self.axes.iter().any(|(flag, values)| is_all(flag, values))
    }
}

/// The verb: the first word behind the program's name that is neither a flag nor the value of one.
fn verb_of(words: &[OsString]) -> Option<&str> {
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        match word.to_str()? {
            flag if OF_EVERY_VERB.contains(&flag) => {
                let _ = words.next();
            }
            flag if flag.starts_with('-') => {}
            verb => return Some(verb),
        }
    }
    None
}

fn is_all(flag: &str, values: &[String]) -> bool {
    flag == "dataset" && values == ["all"]
}

/// The flag that a word is, and its value where it brings one.
fn flag_of(word: &str) -> Option<(&'static str, Option<&str>)> {
    FLAGS.iter().find_map(|(flag, letter)| {
        let name = flag.trim_start_matches('-');
        match word.strip_prefix(flag) {
            Some("") => Some((name, None)),
            Some(rest) => rest.strip_prefix('=').map(|value| (name, Some(value))),
            None if Some(word) == *letter => Some((name, None)),
            None => None,
        }
    })
}

/// The values of one word. What may be a path is one value, whatever it has in it.
fn parts(flag: &str, value: &str) -> Vec<String> {
    let is_name = |part: &str| !part.is_empty() && !part.contains(['/', '\\', ':']);
    match value.split(',').all(is_name) && (flag != "system" || !std::path::Path::new(value).exists()) {
        true => value.split(',').map(str::to_owned).collect(),
        false => vec![value.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn find(words: &str) -> Option<Several> {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        Several::find(&words)
    }

    #[test]
    fn flags_with_several_values_are_axes_and_all_other_words_stay() {
        let found = find("bench-coord --store sqlite:a.db submit -p bm25 --system=none --preset quick,fair --dataset locomo-sim --yes")
            .expect("several systems and presets");
        let axis = |flag: &str, values: &[&str]| (flag.to_owned(), values.iter().map(|v| (*v).to_owned()).collect());
        assert_eq!(
            found.axes,
            [axis("system", &["bm25", "none"]), axis("preset", &["quick", "fair"]), axis("dataset", &["locomo-sim"])]
        );
        let first =
            found.first().into_iter().map(|word| word.into_string().expect("text")).collect::<Vec<_>>().join(" ");
        assert_eq!(
            first,
            "bench-coord --store sqlite:a.db submit --yes --system=bm25 --preset=quick --dataset=locomo-sim"
        );
    }

    #[test]
    fn one_value_of_each_is_an_ordinary_run() {
        for one in [
            "bench-coord submit --system bm25 --dataset locomo-sim",
            "bench-coord submit --system ./a,b.yaml",
            "bench-coord submit --system mine.py:A,B",
            "bench-coord list --system a --system b",
            "bench-coord list --tag submit --system a --system b",
            "bench-coord --set run.name=x list --tag submit --system a --system b",
            "bench-coord estimate --system",
            "bench-coord submit",
        ] {
            assert_eq!(find(one), None, "{one}");
        }
        assert!(find("bench-coord submit --dataset all").expect("is a matrix").has_all_datasets());
        assert!(find("bench-coord submit --system bm25,none").is_some());
        assert!(find("bench-coord -v --store sqlite:list --set=a=b submit --system bm25,none").is_some());
        let seeds =
            find("bench-coord submit --dataset locomo-sim --dataset-seed 1,-2,3 --dataset-seed=x").expect("several");
        assert_eq!(seeds.axes[1], ("dataset-seed".to_owned(), ["1", "-2", "3", "x"].map(str::to_owned).into()));
        assert_eq!(find("bench-coord submit --dataset locomo-sim --dataset-seed 4"), None);
    }

    #[test]
    fn what_may_stand_before_a_verb_is_known() {
        let cli = Cli::command();
        let flags = cli.get_arguments().filter(|arg| arg.is_global_set() && arg.get_action().takes_values());
        let flags: Vec<String> = flags.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect();
        assert_eq!(flags, OF_EVERY_VERB);
    }
}
