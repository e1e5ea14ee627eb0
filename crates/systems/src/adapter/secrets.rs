//! What a system is given and nobody else may read. Servers and processes repeat their keys in their words; no failure, line of a log
//! or version leaves an adapter before they were taken out.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
    sync::Arc,
};

use async_trait::async_trait;
use bench_proto::{dataset::StreamEntry, failure::Failure, redact, server::ServerAddress};
use reqwest::Url;

use super::{
    given::Given,
    literal::{is_secretive, plain},
    said::excerpt,
    spec::AdapterSpec,
    template::escape,
    variables::{Piece, inside_of_a_string, names, pieces},
};
use crate::{
    BankRef, Capabilities, Consolidation, Counted, ListCursor, ListedPage, MemorySystem, NativeAnswer, Prepared,
    Readiness, Recall, RecallQuery, RetainReceipt, StepContext, SystemStats,
};

/// Shorter values of `auth` are left in texts. Of all other values it is [`redact::SHORTEST_SECRET`].
const SHORTEST_KEY: usize = 4;
/// What stands for a value whose name says that it is secret.
const HIDDEN: &str = "[key]";
/// Most numbers that a system says of itself and a bank; they are stored with each bank.
const MOST_NUMBERS: usize = 100;
/// Longest name of one, in bytes.
const LONGEST_NAME: usize = 100;
/// The end of a text that was cut.
const CUT: char = '…';

/// Everything that is filled into an adapter, with what stands for it in messages; one that holds another comes first.
#[derive(Clone, Default)]
pub(super) struct Secrets(Arc<Vec<(String, String)>>);

impl Secrets {
    /// Of an adapter, with the place that it was pointed to.
    pub(super) fn from_spec(spec: &AdapterSpec, url: Option<&str>) -> Self {
        let mut values = BTreeMap::new();
        // the name of a variable is no key
        let written = spec.filled().chain(url).map(plain);
        let mut keys_of_urls: Vec<String> = written.flat_map(|text| redact::secrets_of_url(&text)).collect();
        for name in spec.filled().chain(url).flat_map(names) {
            let mark = if is_secretive(name) { HIDDEN.to_owned() } else { format!("${{env:{name}}}") };
            let value = std::env::var(name).ok();
            // a server repeats the path of a request, and not the whole of its address
            keys_of_urls.extend(value.iter().flat_map(|value| redact::secrets_of_url(value)));
            for value in value.iter().flat_map(|value| forms(value)) {
                if value.len() >= redact::SHORTEST_SECRET {
                    values.entry(value).or_insert(mark.clone());
                }
            }
        }
        let key = spec.auth.as_ref().and_then(|auth| match (&auth.env, &auth.file) {
            (Some(name), _) => std::env::var(name).ok(),
            (None, path) => std::fs::read_to_string(path.as_ref()?).ok(),
        });
        for value in key.iter().flat_map(|value| forms(value)).filter(|value| value.len() >= SHORTEST_KEY) {
            values.insert(value, HIDDEN.to_owned());
        }
        values.extend(keys_of_urls.into_iter().map(|value| (value, HIDDEN.to_owned())));
        Self::from_iter(values)
    }

    /// Of a system: of its adapter, with the place that it was pointed to, and the key that a metered run gives it in place of real
    /// ones.
    pub(super) fn of_system(spec: &AdapterSpec, url: Option<&str>, given: &Given) -> Self {
        let of_adapter = Self::from_spec(spec, url);
        let Some(key) = given.key() else { return of_adapter };
        let drawn = forms(key).into_iter().map(|form| (form, HIDDEN.to_owned()));
        of_adapter.0.iter().cloned().chain(drawn).collect()
    }

    /// What stands in variables of this process whose names say that they are secret.
    pub(super) fn from_environment() -> Self {
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let values = variables.filter(|(name, _)| is_secretive(name)).flat_map(|(_, value)| forms(&value));
        values.filter(|value| value.len() >= redact::SHORTEST_SECRET).map(|value| (value, HIDDEN.to_owned())).collect()
    }

    /// Those that are secret by their names, or are keys: not the addresses among what is filled in.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, mark)| mark == HIDDEN).map(|(value, _)| value.as_str())
    }

    /// Takes them out of a text, also where the text was cut within one.
    pub(super) fn hide(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        for (value, mark) in self.0.iter() {
            if shown.contains(value) {
                shown = shown.replace(value, mark);
            }
            let cuts: Vec<usize> = shown.match_indices(CUT).map(|(at, _)| at).collect();
            for at in cuts.into_iter().rev() {
                let before = shown[..at].trim_end();
                let mut beginnings = value.char_indices().map(|(end, _)| end).rev();
                let length = beginnings.find(|end| *end >= SHORTEST_KEY && before.ends_with(&value[..*end]));
                let end = before.len();
                if let Some(length) = length {
                    shown.replace_range(end - length..end, mark);
                }
            }
        }
        shown
    }

    fn hide_in<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        result.map_err(|failure| Failure { message: self.hide(&failure.message), ..failure })
    }
}

/// Where an adapter has a key from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeySource {
    /// A variable of this name.
    Variable(String),
    /// The file at this path.
    File(String),
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => f.write_str(name),
            Self::File(path) => write!(f, "the file {path}"),
        }
    }
}

/// Keys that an adapter names, and that this process cannot read. Those without which the system is asked too (`optional`, a default)
/// are none, nor is what a metered run gives in place of a variable. What stands empty is not there.
pub(super) fn not_read(spec: &AdapterSpec, url: Option<&str>, given: &Given) -> BTreeSet<KeySource> {
    let given = given.of_bank(None);
    let is_unset = |name: &str| !given.contains_key(name) && is_nothing(std::env::var(name).ok());
    // a variable that is filled in is a key by its name alone, and one of several tokens is a number of them (`MAX_TOKENS`)
    let is_key = |name: &str| is_secretive(name) && !name.to_ascii_uppercase().ends_with("TOKENS");
    let named = spec.filled().chain(url).flat_map(|text| pieces(text).into_iter().flatten());
    let unset = named.filter_map(|piece| match piece {
        Piece::Variable(name, None) if is_key(name) && is_unset(name) => Some(KeySource::Variable(name.to_owned())),
        Piece::Variable(..) | Piece::Plain(_) => None,
    });
    let auth = spec.auth.as_ref().filter(|auth| !auth.optional);
    let of_auth = auth.and_then(|auth| match (&auth.env, &auth.file) {
        (Some(name), _) => is_unset(name).then(|| KeySource::Variable(name.clone())),
        (None, Some(path)) => is_nothing(std::fs::read_to_string(path).ok()).then(|| KeySource::File(path.clone())),
        (None, None) => None,
    });
    unset.chain(of_auth).collect()
}

/// Whether a key is not there, or empty.
fn is_nothing(value: Option<String>) -> bool {
    value.is_none_or(|value| value.trim().is_empty())
}

impl FromIterator<(String, String)> for Secrets {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(values: I) -> Self {
        let mut values: Vec<(String, String)> = values.into_iter().collect();
        values.sort_by_key(|(value, _)| Reverse(value.len()));
        Self(Arc::new(values))
    }
}

/// A value as others repeat it: as it is, on one line, its last word (behind `user` or `Bearer`), in JSON, in a URL and as a host.
fn forms(value: &str) -> Vec<String> {
    let value = value.trim();
    let on_one_line = value.split_whitespace().collect::<Vec<_>>().join(" ");
    let in_query = Url::parse("http://h").ok().and_then(|mut url| {
        url.query_pairs_mut().append_key_only(value);
        url.query().map(str::to_owned)
    });
    let in_path = escape(value);
    let mut forms = vec![value.to_owned(), on_one_line, inside_of_a_string(value), in_path, value.to_ascii_lowercase()];
    forms.extend(value.rsplit_once(char::is_whitespace).map(|(_, last)| last.to_owned()));
    forms.extend(in_query);
    forms
}

/// A system whose failures and words about itself hold no secrets.
pub(super) struct Discreet {
    inner: Arc<dyn MemorySystem>,
    secrets: Secrets,
}

impl Discreet {
    /// Around what an adapter describes.
    pub(super) fn around(inner: Arc<dyn MemorySystem>, secrets: Secrets) -> Arc<dyn MemorySystem> {
        Arc::new(Self { inner, secrets })
    }
}

#[async_trait]
impl MemorySystem for Discreet {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    async fn open_bank(&self, bank: &BankRef) -> Result<String, Failure> {
        self.secrets.hide_in(self.inner.open_bank(bank).await)
    }

    fn together(&self, entries: &[StreamEntry]) -> usize {
        self.inner.together(entries)
    }

    async fn retain(
        &self,
        bank: &BankRef,
        entries: &[StreamEntry],
        step: StepContext<'_>,
    ) -> Result<RetainReceipt, Failure> {
        self.secrets.hide_in(self.inner.retain(bank, entries, step).await)
    }

    async fn readiness(&self, bank: &BankRef, entries: u32) -> Result<Readiness, Failure> {
        self.secrets.hide_in(self.inner.readiness(bank, entries).await)
    }

    async fn prepare(&self, bank: &BankRef, query: Option<&RecallQuery<'_>>) -> Result<Prepared, Failure> {
        self.secrets.hide_in(self.inner.prepare(bank, query).await)
    }

    async fn recall(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<Recall, Failure> {
        self.secrets.hide_in(self.inner.recall(bank, query).await)
    }

    async fn reset_bank(&self, bank: &BankRef) -> Result<(), Failure> {
        self.secrets.hide_in(self.inner.reset_bank(bank).await)
    }

    async fn export_bank(&self, bank: &BankRef, to: &Path, most: u64) -> Result<u64, Failure> {
        self.secrets.hide_in(self.inner.export_bank(bank, to, most).await)
    }

    async fn import_bank(&self, bank: &BankRef, from: &Path) -> Result<(), Failure> {
        self.secrets.hide_in(self.inner.import_bank(bank, from).await)
    }

    async fn health(&self) -> Result<String, Failure> {
        self.secrets.hide_in(self.inner.health().await).map(|about| self.secrets.hide(&about))
    }

    async fn is_there(&self) -> Result<(), Failure> {
        self.secrets.hide_in(self.inner.is_there().await)
    }

    async fn consolidate(&self, bank: &BankRef) -> Result<Consolidation, Failure> {
        self.secrets.hide_in(self.inner.consolidate(bank).await)
    }

    async fn answer(&self, bank: &BankRef, query: &RecallQuery<'_>) -> Result<NativeAnswer, Failure> {
        self.secrets.hide_in(self.inner.answer(bank, query).await)
    }

    async fn verify(&self, bank: &BankRef, entries: u32) -> Result<Option<Counted>, Failure> {
        self.secrets.hide_in(self.inner.verify(bank, entries).await)
    }

    async fn list(&self, bank: &BankRef, entries: u32, from: &ListCursor) -> Result<ListedPage, Failure> {
        self.secrets.hide_in(self.inner.list(bank, entries, from).await)
    }

    async fn statistics(&self, bank: &BankRef) -> Result<SystemStats, Failure> {
        let stats = self.secrets.hide_in(self.inner.statistics(bank).await)?;
        let numbers = stats.numbers.into_iter().filter(|(name, _)| name.len() <= LONGEST_NAME).take(MOST_NUMBERS);
        Ok(SystemStats {
            version: stats.version.map(|version| excerpt(&self.secrets.hide(&version))),
            numbers: numbers.collect(),
        })
    }

    fn on_this_machine(&self, bank: &BankRef) -> Result<(), Failure> {
        self.secrets.hide_in(self.inner.on_this_machine(bank))
    }

    fn place(&self) -> String {
        self.inner.place()
    }

    async fn server(&self, bank: &BankRef) -> Option<ServerAddress> {
        self.inner.server(bank).await
    }

    fn started_again(&self) -> Vec<String> {
        self.inner.started_again().iter().map(|ended| self.secrets.hide(ended)).collect()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemSettings;

    fn secrets(values: &[&str]) -> Secrets {
        values.iter().flat_map(|value| forms(value)).map(|form| (form, HIDDEN.to_owned())).collect()
    }

    #[test]
    fn a_secret_is_taken_out_in_every_form_in_which_it_is_repeated() {
        let secrets = secrets(&["Open \"sesame\"/+Now", "-----BEGIN KEY-----\nabcdef\n-----END KEY-----"]);
        for (said, shown) in [
            (r#"wrong key Open "sesame"/+Now"#, "wrong key [key]"),
            (r#"{"said": "Open \"sesame\"/+Now"}"#, r#"{"said": "[key]"}"#),
            ("GET /Open%20%22sesame%22%2F%2BNow", "GET /[key]"),
            ("GET /?k=Open+%22sesame%22%2F%2BNow", "GET /?k=[key]"),
            ("of -----BEGIN KEY----- abcdef -----END KEY-----", "of [key]"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(secrets.hide(said), shown);
        }
    }

    #[test]
    fn a_secret_that_a_cut_has_shortened_is_taken_out_too() {
        let secrets = secrets(&["open-sesame-1234"]);
        for (said, shown) in [
            ("wrong: open-sesame-12 …", "wrong: [key] …"),
            ("wrong: open…; its log ends: open-sesame-123…", "wrong: [key]…; its log ends: [key]…"),
            ("wrong: ope …", "wrong: ope …"),
        ] {
            assert_eq!(secrets.hide(said), shown);
        }
    }

    #[test]
    fn keys_that_are_named_and_cannot_be_read_are_told_by_their_names() {
        let told = |auth: &str, token: &str, given: &Given| {
            let text = format!(
                "name: mine\n{auth}start: {{command: [mem, '${{env:NO_SUCH_MODEL}}'], env: {{A: '{token}', B: '${{env:PATH}}'}}}}\n"
            );
            let spec = serde_norway::from_str(&text).expect("is YAML");
            let told = not_read(&spec, Some("http://h/${env:NO_SUCH_KEY_OF_URL}"), given);
            told.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let (auth, token) = ("auth: {env: NO_SUCH_AUTH}\n", "${env:OPENAI_API_KEY_OF_NOBODY}");
        let nothing = Given::default();
        assert_eq!(told(auth, token, &nothing), ["NO_SUCH_AUTH", "NO_SUCH_KEY_OF_URL", "OPENAI_API_KEY_OF_NOBODY"]);
        let optional = "auth: {env: NO_SUCH_AUTH, optional: true}\n";
        assert_eq!(told(optional, "${env:NO_SUCH_TOKEN:-none}", &nothing), ["NO_SUCH_KEY_OF_URL"]);
        assert_eq!(
            told("auth: {file: /no/such/key}\n", "${env:NO_SUCH_MAX_TOKENS}", &nothing),
            ["NO_SUCH_KEY_OF_URL", "the file /no/such/key"]
        );
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        let auth = format!("auth: {{file: '{}'}}\n", file.display());
        for (key, is_there) in [(" \n", false), ("open\n", true)] {
            std::fs::write(&file, key).expect("is written");
            assert_eq!(told(&auth, "", &nothing).len(), 1 + usize::from(!is_there), "{key:?}");
        }
        let more = BTreeMap::from([("NO_SUCH_KEY_OF_URL".to_owned(), "{key}".to_owned())]);
        assert_eq!(told("", "", &Given::new("http://127.0.0.1:1/m/r", "drawn", &more)), [""; 0]);
    }

    #[test]
    fn the_key_of_a_metered_run_is_one_of_the_secrets_of_its_system() {
        let key = "bm-00112233445566778899aabbccddeeff00112233";
        let given = Given::new("http://127.0.0.1:7/m/r1", key, &BTreeMap::new());
        // a variable that is there in every test: what it holds stands for a key
        let own = env!("CARGO_MANIFEST_DIR");
        let spec = super::super::file::parse("name: mine\nauth: {env: CARGO_MANIFEST_DIR}\n").expect("reads");
        let all = Secrets::of_system(&spec, None, &given);
        assert_eq!(all.hide(&format!("{key}, {own}, {} …", &key[..30])), "[key], [key], [key] …");
        assert!(all.values().any(|value| value == key));
        let unmetered = Secrets::of_system(&spec, None, &Given::default());
        assert!(unmetered.values().all(|value| !value.contains(key)), "a run that is not metered has none");
    }

    #[test]
    fn every_value_that_is_filled_into_an_adapter_is_one_of_its_secrets() {
        // variables that are there in every test: what they hold stands for keys
        for place in [
            "url: 'https://${env:CARGO_MANIFEST_DIR}.example'",
            "headers: {X-A: 'Bearer ${env:CARGO_MANIFEST_DIR}'}",
            "command: [mem, '${env:CARGO_MANIFEST_DIR}']",
            "mcp: {command: [mem, '${env:CARGO_MANIFEST_DIR}']}",
            "mcp: {url: 'https://a.example/${env:CARGO_MANIFEST_DIR}'}",
            "env: {A: '${env:CARGO_MANIFEST_DIR:-x}'}",
            "start: {command: [mem, '${env:CARGO_MANIFEST_DIR}']}",
            "start: {command: [mem], check: [mem, '${env:CARGO_MANIFEST_DIR}']}",
            "start: {env: {A: '${env:CARGO_MANIFEST_DIR}'}}",
            "start: {files: {a.toml: 'k = ${env:CARGO_MANIFEST_DIR}'}}",
            "auth: {env: CARGO_MANIFEST_DIR}",
        ] {
            let spec = super::super::file::parse(&format!("name: mine\n{place}\n")).expect("reads");
            let said = Secrets::from_spec(&spec, None).hide(concat!("not ", env!("CARGO_MANIFEST_DIR"), "!"));
            assert!(!said.contains(env!("CARGO_MANIFEST_DIR")), "{place}: {said}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("key");
        std::fs::write(&file, " open\n").expect("is written");
        let spec = super::super::file::parse(&format!("name: mine\nauth: {{file: '{}'}}\n", file.display()));
        assert_eq!(Secrets::from_spec(&spec.expect("reads"), None).hide("not open!"), "not [key]!");
        let spec = super::super::file::parse("name: mine\n").expect("reads");
        let moved = Secrets::from_spec(&spec, Some("https://a.example/${env:CARGO_MANIFEST_DIR}"));
        assert_eq!(moved.hide(env!("CARGO_MANIFEST_DIR")), "${env:CARGO_MANIFEST_DIR}");
        // a server repeats the path of a request, which its client has taken from an address
        let (in_path, in_query) = ("sk-proj-0123456789abcdefghij", "zq9open0sesame7");
        let at = format!("https://a.example/{in_path}/v1?key={in_query}");
        let by_file = super::super::file::parse(&format!("name: mine\nurl: '{at}'\n")).expect("reads");
        for secrets in [Secrets::from_spec(&by_file, None), Secrets::from_spec(&spec, Some(&at))] {
            let said = secrets.hide(&format!("Cannot POST /{in_path}/v1/add?key={in_query}"));
            assert_eq!(said, "Cannot POST /[key]/v1/add?key=[key]");
        }
        let named = format!("https://a.example/${{env:MEM0_API_KEY}}/{in_path}");
        let said = Secrets::from_spec(&spec, Some(&named)).hide(&format!("{named} /$%7Benv:MEM0_API_KEY%7D/"));
        assert_eq!(said, "https://a.example/${env:MEM0_API_KEY}/[key] /$%7Benv:MEM0_API_KEY%7D/", "a name is no key");
        // what stands in the file is stored with it
        let adapter = serde_json::to_value(by_file).expect("is JSON");
        let settings = SystemSettings::from([(super::super::ADAPTER.to_owned(), adapter)]);
        assert!(
            !super::super::secrets_of(&settings).iter().any(|secret| [in_path, in_query].contains(&secret.as_str()))
        );
    }
}
