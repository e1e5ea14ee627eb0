//! What a memory system is given in place of the environment of whoever runs the benchmark: in a metered run the address of the meter and
//! a key of the run stand for the variables that name a provider of models, so that the system holds no key of anybody's (P34).

use std::collections::BTreeMap;

/// Variables by which providers are usually named: `{url}` is the meter's address for the run or the bank, `{key}` the run's key.
const USUAL: [(&str, &str); 11] = [
    ("ANTHROPIC_API_KEY", "{key}"),
    ("ANTHROPIC_BASE_URL", "{url}"),
    ("AZURE_OPENAI_API_KEY", "{key}"),
    ("AZURE_OPENAI_ENDPOINT", "{url}"),
    ("BENCH_METER_KEY", "{key}"),
    ("BENCH_METER_URL", "{url}/v1"),
    ("OPENAI_API_BASE", "{url}/v1"),
    ("OPENAI_API_KEY", "{key}"),
    ("OPENAI_BASE_URL", "{url}/v1"),
    ("OPENAI_EMBEDDINGS_URL", "{url}/v1/embeddings"),
    ("OPENAI_URL", "{url}/v1"),
];

/// Variables that shipped adapters name, where they mean a provider. Each stands behind the one that switches its use on: a system
/// that would use no model without the meter uses none with it.
const SHIPPED: [(&str, &str, &str); 4] = [
    ("HEBB_EMBEDDINGS_URL", "HEBB_EMBEDDINGS_KEY", "{key}"),
    ("HEBB_EMBEDDINGS_URL", "HEBB_EMBEDDINGS_URL", "{url}/v1/embeddings"),
    ("HEBB_LLM_URL", "HEBB_LLM_URL", "{url}/v1"),
    // the daemon adds /v1 itself
    ("JB_TYPESCRIPT", "JB_TYPESCRIPT_URL", "{url}"),
];

/// Where the meter is for a run, and which variables say so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// The address for the run, without the provider's `/v1`; empty: nothing is given.
    url: String,
    key: String,
    templates: BTreeMap<String, String>,
}

impl Given {
    /// The meter's address for a run (`http://127.0.0.1:7070/m/RUN`), the run's key, and variables beside the usual ones, as texts with
    /// `{url}` and `{key}` in them.
    #[must_use]
    pub fn new(url: impl Into<String>, key: impl Into<String>, more: &BTreeMap<String, String>) -> Self {
        Self::where_set(url.into(), key.into(), more, &|name| std::env::var_os(name).is_some())
    }

    /// What a metered run will be given, for who looks before there is a meter: the names are known, the address is nobody's. Nothing
    /// for a run that is not metered; `more` are its variables beside the usual ones.
    #[must_use]
    pub fn before_the_meter(more: Option<&BTreeMap<String, String>>) -> Self {
        more.map_or_else(Self::default, |more| Self::new("http://127.0.0.1:9", "none-yet", more))
    }

    fn where_set(url: String, key: String, more: &BTreeMap<String, String>, is_set: &dyn Fn(&str) -> bool) -> Self {
        let shipped = SHIPPED.iter().filter(|(switch, ..)| is_set(switch)).map(|(_, name, text)| (name, text));
        let known = USUAL.iter().map(|(name, text)| (name, text)).chain(shipped);
        let known = known.map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        let more = more.iter().filter(|(_, text)| leads_to_the_meter(text));
        let templates = known.chain(more.map(|(name, text)| (name.clone(), text.clone()))).collect();
        Self { url, key, templates }
    }

    /// Whether the run is not metered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.url.is_empty()
    }

    /// The run's key; none where the run is not metered.
    pub(crate) fn key(&self) -> Option<&str> {
        (!self.is_empty()).then_some(self.key.as_str())
    }

    /// The variables for a system that serves one bank, or all of them.
    pub(crate) fn of_bank(&self, bank: Option<&str>) -> BTreeMap<String, String> {
        let url = match bank.and_then(generation_of) {
            Some((bank, generation)) => format!("{}/{bank}/{generation}", self.url),
            None => self.url.clone(),
        };
        let filled = |text: &String| text.replace("{url}", &url).replace("{key}", &self.key);
        if self.is_empty() {
            return BTreeMap::new();
        }
        self.templates.iter().map(|(name, text)| (name.clone(), filled(text))).collect()
    }

    /// Those of them that a system sees although its file does not name them. What a run names itself is none of them: a run carries
    /// no authority, and would say by them what an allowed program loads (P42).
    pub(crate) fn usual(&self, bank: Option<&str>) -> BTreeMap<String, String> {
        let mut all = self.of_bank(bank);
        all.retain(|name, _| USUAL.iter().any(|(usual, _)| name == usual));
        all
    }
}

/// Whether the value of a variable that a run names is the meter's address, with a path behind it, or the run's key: it can be nothing
/// else, since what a file takes from a variable may be a program or a folder (P42).
#[must_use]
pub fn leads_to_the_meter(text: &str) -> bool {
    let is_path = |rest: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
        (rest.is_empty() || rest.starts_with('/')) && rest.chars().all(plain)
    };
    text == "{key}" || text.strip_prefix("{url}").is_some_and(is_path)
}

/// The parts of a bank's name `bench-12-g3` or `bench-12-g3-i5f`: its name without the generation, and the generation.
#[must_use]
pub fn generation_of(name: &str) -> Option<(&str, u32)> {
    let (bank, rest) = name.rsplit_once("-g")?;
    let generation = rest.split_once("-i").map_or(rest, |(generation, _)| generation);
    Some((bank, generation.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p42_variables_name_the_meter_the_run_and_the_bank_and_nothing_else() {
        let mine = [
            ("MINE", "{url}/v1/chat"),
            ("MY_KEY", "{key}"),
            ("LD_PRELOAD", "/tmp/x.so {key}"),
            ("PROGRAM", "{url}; sh"),
        ];
        let more: BTreeMap<String, String> = mine.map(|(name, text)| (name.to_owned(), text.to_owned())).into();
        let of = |set: &'static str| {
            Given::where_set("http://127.0.0.1:7/m/r1".to_owned(), "bm-1".to_owned(), &more, &move |name| name == set)
        };
        let given = of("HEBB_EMBEDDINGS_URL");
        let of_run = given.of_bank(None);
        assert_eq!(of_run["OPENAI_BASE_URL"], "http://127.0.0.1:7/m/r1/v1");
        assert_eq!(of_run["ANTHROPIC_BASE_URL"], "http://127.0.0.1:7/m/r1", "its SDKs add /v1 themselves");
        let of_bank = given.of_bank(Some("bench-12-g3-i5f"));
        assert_eq!(
            (of_bank["MINE"].as_str(), of_bank["MY_KEY"].as_str()),
            ("http://127.0.0.1:7/m/r1/bench-12/3/v1/chat", "bm-1")
        );
        assert!(!of_bank.contains_key("LD_PRELOAD") && !of_bank.contains_key("PROGRAM"), "no run says what is loaded");
        assert_eq!(of_bank["HEBB_EMBEDDINGS_URL"], "http://127.0.0.1:7/m/r1/bench-12/3/v1/embeddings");
        assert!(!of_bank.contains_key("HEBB_LLM_URL"), "what the user has not switched on stays off");
        assert!(!of_bank.contains_key("JB_TYPESCRIPT_URL"));
        assert_eq!(of("JB_TYPESCRIPT").of_bank(None)["JB_TYPESCRIPT_URL"], "http://127.0.0.1:7/m/r1");
        let usual = given.usual(None);
        assert!(!usual.contains_key("HEBB_EMBEDDINGS_URL") && usual.contains_key("OPENAI_API_KEY"));
        assert!(!usual.contains_key("MINE"), "a file has to name it");
        let before = Given::before_the_meter(Some(&more)).of_bank(None);
        assert_eq!((before["MY_KEY"].as_str(), before.contains_key("OPENAI_API_KEY")), ("none-yet", true));
        assert!(Given::before_the_meter(None).is_empty());
        assert!(Given::default().is_empty() && Given::default().of_bank(Some("bench-1-g1")).is_empty());
    }

    #[test]
    fn names_of_banks_are_taken_apart() {
        assert_eq!(generation_of("bench-12-g3"), Some(("bench-12", 3)));
        assert_eq!(generation_of("bench-12-g3-i5f"), Some(("bench-12", 3)));
        assert_eq!(generation_of("mine"), None);
    }
}
