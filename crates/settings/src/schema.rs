//! Which settings exist and what values they take. What they mean is said once, in `default-config.toml`; a test holds
//! the two lists together.

use std::borrow::Cow;

use bench_proto::{
    nearest::{distance, ranked},
    probe::MOST_RECALLS,
    redact,
    scenario::{MOST_REPHRASED, MOST_SEARCHES},
    task::MOST_POOL_BYTES,
};

/// What other tools call settings of ours, by the last part of the name.
pub(crate) const CALLED_ELSEWHERE: &[(&str, &str)] = &[
    ("k", "run.top_k"),
    ("topk", "run.top_k"),
    ("budget", "run.max_cost"),
    ("rpm", "run.max_rpm"),
    ("tpm", "run.max_tpm"),
    ("workers", "run.concurrency"),
];

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// `true` or `false`.
    Bool,
    /// A whole number in a range.
    Whole {
        /// Smallest.
        min: i64,
        /// Largest.
        max: i64,
    },
    /// A number in a range.
    Number {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// A duration such as `"500ms"`.
    Duration,
    /// One of some words.
    OneOf(&'static [&'static str]),
    /// A list of texts.
    List,
    /// The name of a pool.
    Pool,
    /// A URL with its scheme, such as this one; its password is never shown.
    Url(&'static str),
    /// Where a model's server is: http or https, with the path of its API.
    BaseUrl,
    /// A file or folder.
    Path,
    /// An amount of dollars.
    Usd,
    /// The same, or a number of tokens or calls.
    Cap,
    /// A text, number or truth value that its owner (a dataset, a system) checks.
    Scalar,
    /// A key: from the environment only, never shown.
    Secret,
}

impl Kind {
    /// What is expected instead of `found`, as the end of "expected …".
    pub(crate) fn expected(&self, found: Option<&str>) -> String {
        match self {
            Self::Text => "a text".into(),
            Self::Bool => "true or false".into(),
            Self::Whole { min, max: i64::MAX } => format!("a whole number of at least {min}"),
            Self::Whole { min, max } => format!("a whole number from {min} to {max}"),
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::Duration => r#"a duration such as "500ms", "2s" or "15m""#.into(),
            Self::OneOf(words) => format!("one of {}", words.join(", ")),
            Self::List => r#"a list of texts such as ["a", "b"]"#.into(),
            Self::Pool => format!("a name of 1 to {MOST_POOL_BYTES} bytes, of printable characters"),
            Self::Url(example) => format!("a URL with its scheme, such as \"{example}\""),
            Self::BaseUrl => match found.and_then(base_url_meant) {
                Some(meant) => format!("a URL that begins with http:// or https://; did you mean {meant}?"),
                None => r#"an http:// or https:// URL, such as "http://localhost:8000/v1""#.into(),
            },
            Self::Path => "a path".into(),
            Self::Usd => "an amount of dollars such as 20 or 0.5".into(),
            Self::Cap => r#"an amount of dollars such as 20 or 0.5, or "500calls", or "2000000tokens""#.into(),
            Self::Scalar => "a text, a number, true or false".into(),
            Self::Secret => "a key".into(),
        }
    }
}

/// The base URL that was probably meant by one without a scheme: TLS is usual where names have dots. A word alone may be a key that
/// was put into the wrong variable, and is not repeated.
fn base_url_meant(text: &str) -> Option<String> {
    let host = text.split(['/', ':']).next().filter(|host| !host.is_empty())?;
    if host == text && !host.contains('.') && host != "localhost" {
        return None;
    }
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~:/?=&%".contains(c)) && !text.contains("://");
    let here = !host.contains('.') || host.parse::<std::net::Ipv4Addr>().is_ok();
    let meant = || redact::url(&format!("{}://{text}", if here { "http" } else { "https" })).into_owned();
    plain.then(meant).filter(|meant| meant != redact::HIDDEN)
}

/// A setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Key {
    /// Dotted name.
    pub name: Cow<'static, str>,
    /// What values it takes.
    pub kind: Kind,
    /// The environment variable that sets it.
    pub env: Option<&'static str>,
    /// Whether `config show` lists it without `--all`.
    pub common: bool,
}

/// A setting that a dataset or a memory system brings along. Its owner checks the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraKey {
    /// Dotted name (`bm25.k1`), or a whole section (`mem0.*`) for programs that only pass it on; `*` for every section of which a
    /// program knows nothing, as a worker of the datasets'.
    pub name: String,
    /// The owner's default as a person types it, for `config show`; never handed back to the owner.
    pub default: Option<String>,
}

const fn key(name: &'static str, kind: Kind) -> Key {
    Key { name: Cow::Borrowed(name), kind, env: None, common: false }
}

impl Key {
    const fn env(mut self, variable: &'static str) -> Self {
        self.env = Some(variable);
        self
    }

    const fn common(mut self) -> Self {
        self.common = true;
        self
    }
}

const COUNT: Kind = Kind::Whole { min: 1, max: i64::MAX };

/// What a provider counts of a call: its largest reply, or the reply that came.
const TPM_COUNTS: Kind = Kind::OneOf(&["reserved", "used"]);

/// Who says what a key has spent, and how.
const SPENT: Kind = Kind::OneOf(&["openrouter", "litellm"]);

/// Fields of `[accounts.NAME]`.
pub(crate) const ACCOUNT_FIELDS: [(&str, Kind); 9] = [
    ("base_url", Kind::BaseUrl),
    ("api_key_env", Kind::Text),
    ("api_key_file", Kind::Path),
    ("rpm", COUNT),
    ("tpm", COUNT),
    ("tpm_counts", TPM_COUNTS),
    ("spent", SPENT),
    ("stream_usage", Kind::Bool),
    ("parameters", Kind::List),
];

/// All settings of the program itself, in the order of the default file.
pub(crate) const KEYS: &[Key] = &[
    key("home", Kind::Path).env("BENCH_HOME").common(),
    key("datasets_dir", Kind::Path).env("BENCH_DATASETS_DIR").common(),
    key("datasets_url", Kind::Text).env("BENCH_DATASETS_URL"),
    key("allow_plaintext", Kind::List).env("BENCH_ALLOW_PLAINTEXT"),
    key("store.url", Kind::Url("sqlite:bench.db")).env("BENCH_STORE_URL").common(),
    key("queue.url", Kind::Url("memory:")).env("BENCH_QUEUE_URL").common(),
    key("run.dataset", Kind::Text).common(),
    key("run.preset", Kind::OneOf(&["quick", "fair", "fair-2", "full"])).common(),
    key("run.sampler", Kind::OneOf(&["hash", "astrocyte", "go-lcg", "astrocyte-lme"])),
    key("run.seed", Kind::Text),
    key("run.limit", COUNT),
    key("run.sample", COUNT),
    key("run.sample_total", COUNT),
    key("run.per_bank", COUNT),
    key("run.max_banks", COUNT),
    key("run.max_sessions", Kind::Whole { min: 1, max: u32::MAX as i64 }),
    key("run.category", Kind::List),
    key("run.exclude_category", Kind::List),
    key("run.facet", Kind::List),
    key("run.exclude_facet", Kind::List),
    key("run.system", Kind::Text).common(),
    key("run.top_k", Kind::Whole { min: 1, max: 10_000 }).common(),
    key("run.scenario", Kind::OneOf(&["answer", "retrieve-only", "ask-basic", "ask-augmented", "reflect", "agentic"])),
    key("run.max_recalls", Kind::Whole { min: 1, max: MOST_SEARCHES as i64 }),
    key("run.multi_query", Kind::Whole { min: 0, max: MOST_REPHRASED as i64 }),
    key("run.answerer", Kind::Text).common(),
    key("run.judge", Kind::List).common(),
    key("run.votes", Kind::Whole { min: 1, max: 31 }).common(),
    key("run.rubric", Kind::Text),
    key("run.scorer", Kind::List),
    key("run.headline", Kind::Text),
    key("run.controls", Kind::Bool),
    key("run.canaries", Kind::Bool),
    key("run.concurrency", Kind::Whole { min: 1, max: 100_000 }),
    key("run.retries", Kind::Whole { min: 0, max: 1000 }).common(),
    key("run.outage_timeout", Kind::Whole { min: 0, max: 604_800 }),
    key("run.latency_probe", Kind::Whole { min: 0, max: MOST_RECALLS as i64 }),
    key("run.latency_probe_rate", Kind::List),
    key("run.pool", Kind::Pool),
    key("run.max_cost", Kind::Cap),
    key("run.max_cost_retain", Kind::Usd),
    key("run.max_cost_recall", Kind::Usd),
    key("run.max_cost_answer", Kind::Usd),
    key("run.max_cost_judge", Kind::Usd),
    key("run.max_cost_per_day", Kind::Usd),
    key("run.max_rpm", COUNT),
    key("run.max_tpm", COUNT),
    key("run.unpriced_ok", Kind::Bool),
    key("run.cache", Kind::OneOf(&["lineage", "shared", "off", "refresh"])),
    key("backoff.initial_interval", Kind::Duration),
    key("backoff.multiplier", Kind::Number { min: 1.0, max: 100.0 }),
    key("backoff.randomization_factor", Kind::Number { min: 0.0, max: 1.0 }),
    key("backoff.max_interval", Kind::Duration),
    key("models.price_file", Kind::Path),
    key("models.timeout", Kind::Duration),
    key("models.connect_timeout", Kind::Duration),
    key("models.max_concurrency", Kind::Whole { min: 1, max: 100_000 }),
    key("models.look_first", Kind::Bool),
    key("answerer.account", Kind::Text),
    key("answerer.base_url", Kind::BaseUrl).env("BENCH_ANSWERER_BASE_URL"),
    key("answerer.api_key", Kind::Secret).env("BENCH_ANSWERER_API_KEY"),
    key("answerer.temperature", Kind::Number { min: 0.0, max: 2.0 }),
    key("answerer.max_output_tokens", Kind::Whole { min: 1, max: 1_000_000 }),
    key("answerer.params", Kind::Text),
    key("judge.account", Kind::Text),
    key("judge.base_url", Kind::BaseUrl).env("BENCH_JUDGE_BASE_URL"),
    key("judge.api_key", Kind::Secret).env("BENCH_JUDGE_API_KEY"),
    key("judge.temperature", Kind::Number { min: 0.0, max: 2.0 }),
    key("judge.max_output_tokens", Kind::Whole { min: 1, max: 1_000_000 }),
    key("judge.params", Kind::Text),
    key("embedder.base_url", Kind::BaseUrl).env("BENCH_EMBEDDER_BASE_URL"),
    key("embedder.api_key", Kind::Secret).env("BENCH_EMBEDDER_API_KEY"),
    key("accounts.openai.base_url", Kind::BaseUrl).env("OPENAI_BASE_URL"),
    key("accounts.openai.api_key_env", Kind::Text),
    key("accounts.openai.api_key_file", Kind::Path),
    key("accounts.openai.rpm", COUNT),
    key("accounts.openai.tpm", COUNT),
    key("accounts.openai.tpm_counts", TPM_COUNTS),
    key("accounts.openai.spent", SPENT),
    key("accounts.openai.stream_usage", Kind::Bool),
    key("accounts.openai.parameters", Kind::List),
    key("accounts.anthropic.base_url", Kind::BaseUrl).env("ANTHROPIC_BASE_URL"),
    key("accounts.anthropic.api_key_env", Kind::Text),
    key("accounts.anthropic.api_key_file", Kind::Path),
    key("accounts.anthropic.rpm", COUNT),
    key("accounts.anthropic.tpm", COUNT),
    key("accounts.anthropic.tpm_counts", TPM_COUNTS),
    key("accounts.anthropic.spent", SPENT),
    key("accounts.anthropic.stream_usage", Kind::Bool),
    key("accounts.anthropic.parameters", Kind::List),
    key("accounts.azure.base_url", Kind::BaseUrl).env("AZURE_OPENAI_ENDPOINT"),
    key("accounts.azure.api_key_env", Kind::Text),
    key("accounts.azure.api_key_file", Kind::Path),
    key("accounts.azure.rpm", COUNT),
    key("accounts.azure.tpm", COUNT),
    key("accounts.azure.tpm_counts", TPM_COUNTS),
    key("accounts.azure.spent", SPENT),
    key("accounts.azure.stream_usage", Kind::Bool),
    key("accounts.azure.parameters", Kind::List),
    key("bm25.k1", Kind::Scalar),
    key("bm25.b", Kind::Scalar),
    key("random.seed", Kind::Scalar),
    key("archive.url", Kind::Text).env("BENCH_ARCHIVE_URL"),
    key("archive.texts", Kind::OneOf(&["by-licence", "always", "never"])).env("BENCH_ARCHIVE_TEXTS"),
    key("meter.on", Kind::Bool),
    key("meter.allow", Kind::List),
    key("meter.accounts", Kind::List),
    key("meter.variables", Kind::List),
    key("meter.fault", Kind::Text),
    key("meter.listen", Kind::Text).env("BENCH_METER_LISTEN"),
    key("meter.url", Kind::Url("http://localhost:8080")).env("BENCH_METER_PUBLIC_URL"),
    key("meter.hosts", Kind::List),
    key("stats.seed", Kind::Whole { min: 0, max: i64::MAX }),
    key("telemetry.endpoint", Kind::Url("http://localhost:4318")).env("OTEL_EXPORTER_OTLP_ENDPOINT"),
    key("telemetry.protocol", Kind::OneOf(&["grpc", "http/protobuf"])).env("OTEL_EXPORTER_OTLP_PROTOCOL"),
    key("telemetry.metrics_interval", Kind::Duration),
    key("telemetry.patience", Kind::Duration),
    key("telemetry.process_rate", Kind::Number { min: 0.0, max: 1.0 }),
    key("trace.url", Kind::Text),
    key("trace.content", Kind::Bool),
    key("trace.slow", Kind::Duration),
    key("trace.quantile", Kind::Number { min: 0.0, max: 1.0 }),
    key("trace.rate", Kind::Number { min: 0.0, max: 1.0 }),
    key("worker.slots", Kind::Whole { min: 1, max: 100_000 }),
    key("worker.drain", Kind::Duration),
    key("worker.bank_cache", Kind::Whole { min: 1, max: 1 << 20 }),
    key("allow.systems", Kind::List).env("BENCH_ALLOW_SYSTEMS"),
    key("allow.commands", Kind::List).env("BENCH_ALLOW_COMMANDS"),
    key("allow.images", Kind::List).env("BENCH_ALLOW_IMAGES"),
    key("allow.variables", Kind::List).env("BENCH_ALLOW_VARIABLES"),
    key("allow.files", Kind::List).env("BENCH_ALLOW_FILES"),
    key("allow.hosts", Kind::List).env("BENCH_ALLOW_HOSTS"),
    key("allow.secrets", Kind::List).env("BENCH_ALLOW_SECRETS"),
];

/// Whether settings of the runner itself begin with this name and a dot.
#[must_use]
pub fn has_section(name: &str) -> bool {
    Schema::new(&[]).is_section(name) || name == "system"
}

/// All settings, those of datasets and systems included.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(crate) keys: Vec<Key>,
    /// Sections of which everything is passed on, with their dot: `mem0.`.
    open_sections: Vec<String>,
    /// Sections of which nothing here knows are somebody else's, and no mistakes.
    leaves_others: bool,
}

impl Schema {
    pub(crate) fn new(extra: &[ExtraKey]) -> Self {
        let mut schema = Self { keys: KEYS.to_vec(), open_sections: Vec::new(), leaves_others: false };
        for extra in extra {
            match extra.name.strip_suffix('*') {
                Some("") => schema.leaves_others = true,
                Some(section) => schema.open_sections.push(section.to_owned()),
                None if schema.find(&extra.name).is_some() => {}
                None => schema.keys.push(Key {
                    name: Cow::Owned(extra.name.clone()),
                    kind: Kind::Scalar,
                    env: None,
                    common: false,
                }),
            }
        }
        schema
    }

    /// What values `name` takes; `None` when there is no such setting.
    pub(crate) fn find(&self, name: &str) -> Option<Kind> {
        let listed = self.keys.iter().find(|key| key.name == name).map(|key| key.kind);
        let open =
            || self.open_sections.iter().any(|section| name.starts_with(section.as_str())).then_some(Kind::Scalar);
        let of_others = || (name.contains('.') && self.is_of_others(name)).then_some(Kind::Scalar);
        listed.or_else(|| account_field(name)).or_else(open).or_else(of_others)
    }

    /// Whether a name lies in a section that is somebody else's: a slip of the keyboard in one of ours is not.
    fn is_of_others(&self, path: &str) -> bool {
        let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let section = first(path);
        let is_near = |known: &str| distance(&section, &first(known)) <= MOST_SLIPS;
        self.leaves_others && section != "profile" && !self.keys.iter().any(|key| is_near(&key.name))
    }

    /// Whether some setting lies below the table `path`.
    pub(crate) fn is_section(&self, path: &str) -> bool {
        let below =
            |name: &str| name.len() > path.len() && name.starts_with(path) && name.as_bytes()[path.len()] == b'.';
        let account = path == "accounts" || path.strip_prefix("accounts.").is_some_and(|name| !name.contains('.'));
        account
            || self.is_of_others(path)
            || self.keys.iter().any(|key| below(&key.name))
            || self
                .open_sections
                .iter()
                .any(|section| below(section) || format!("{path}.").starts_with(section.as_str()))
    }

    /// Names closest to `name`, best first, at most three; what others call a setting of ours is that setting.
    pub(crate) fn nearest(&self, name: &str) -> Vec<String> {
        let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        if let Some((_, ours)) = CALLED_ELSEWHERE.iter().find(|(theirs, _)| last(name).eq_ignore_ascii_case(theirs)) {
            return vec![(*ours).to_owned()];
        }
        // the right name under the wrong section is one mistake
        let of_setting = |known: &str| distance(name, known).min(distance(&last(name), &last(known)) + 1);
        let names = self.keys.iter().map(|key| key.name.as_ref()).filter(|known| !known.ends_with(".api_key"));
        let settings = within_two(names, of_setting);
        if !settings.is_empty() {
            return settings;
        }
        let mut sections: Vec<&str> = self.keys.iter().filter_map(|key| Some(key.name.rsplit_once('.')?.0)).collect();
        sections.dedup();
        within_two(sections.into_iter(), |known| distance(name, known))
    }
}

/// Letters by which a name may differ from the one that is meant: those of settings are long and alike.
const MOST_SLIPS: usize = 2;

/// The names at a distance of [`MOST_SLIPS`] at most, the nearest first, at most three.
pub(crate) fn within_two<'a>(known: impl Iterator<Item = &'a str>, of: impl Fn(&str) -> usize) -> Vec<String> {
    let near = known.map(|known| (of(known), known)).filter(|(distance, _)| *distance <= MOST_SLIPS);
    ranked(near).into_iter().map(str::to_owned).collect()
}

/// The kind of `accounts.NAME.field`.
fn account_field(name: &str) -> Option<Kind> {
    let (account, field) = name.strip_prefix("accounts.")?.rsplit_once('.')?;
    let well_formed = !account.is_empty() && !account.contains('.');
    ACCOUNT_FIELDS.iter().find(|(known, _)| well_formed && *known == field).map(|(_, kind)| *kind)
}
