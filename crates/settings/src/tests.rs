use std::{io, time::Duration};

use secrecy::ExposeSecret;

use super::*;
use crate::schema::{CALLED_ELSEWHERE, KEYS};

fn load(sources: Sources<'_>) -> Result<Settings, String> {
    Settings::load(&sources).map_err(|error| error.to_string())
}

fn file(text: &str) -> Option<(String, String)> {
    Some(("bench.toml".to_owned(), text.to_owned()))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Settings that a dataset brings along.
fn of_sim() -> Vec<ExtraKey> {
    let key = |name: &str, default: Option<&str>| ExtraKey { name: name.into(), default: default.map(str::to_owned) };
    vec![key("sim.seed", None), key("sim.conversations", None), key("sim.noise", Some("0.1"))]
}

/// Looks up variables in a list.
fn env<'a>(variables: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
}

#[test]
fn the_default_file_and_the_schema_name_the_same_settings_in_the_same_order() {
    let mut section = String::new();
    let mut named = Vec::new();
    for line in DEFAULT_CONFIG.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
            continue;
        }
        let assignment = line.trim_start_matches("# ");
        if let Some((name, _)) = assignment.split_once(" = ")
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        {
            named.push(if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") });
        }
    }
    let known: Vec<&str> =
        KEYS.iter().map(|key| key.name.as_ref()).filter(|name| !name.ends_with(".api_key")).collect();
    assert_eq!(named, known);
}

#[test]
fn examples_in_the_default_file_are_valid() {
    let uncommented: String = DEFAULT_CONFIG
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.contains(" = ") && !rest.contains('`') && !rest.contains(": ") => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let settings = load(Sources { file: file(&uncommented), ..Sources::default() }).expect("all examples are valid");
    assert_eq!(settings.run.limit, Some(50));
}

#[test]
fn variables_in_the_default_file_are_those_of_the_schema() {
    for variable in KEYS.iter().filter_map(|key| key.env) {
        assert!(DEFAULT_CONFIG.contains(variable), "{variable} is not mentioned");
    }
}

#[test]
fn what_others_call_a_setting_names_one_of_ours() {
    for (theirs, ours) in CALLED_ELSEWHERE {
        assert!(KEYS.iter().any(|key| key.name == *ours), "{ours} is no setting");
        let sets = words(&[&format!("recall.{theirs}=1")]);
        let message = load(Sources { sets, ..Sources::default() }).expect_err("is no setting");
        assert!(message.contains(&format!("(did you mean '{ours}'?)")), "{message}");
    }
}

#[test]
fn each_of_several_values_of_a_list_may_be_several() {
    let of = |values: &[&str]| {
        let flag = FlagValue { key: "run.category".into(), flag: "--category".into(), values: words(values) };
        load(Sources { flags: vec![flag], ..Sources::default() }).expect("valid").run.category
    };
    assert_eq!(of(&["a,b"]), ["a", "b"]);
    assert_eq!(of(&["a,b", "c", " d , e"]), ["a", "b", "c", "d", "e"]);
}

#[test]
fn defaults_are_the_documented_ones() {
    let settings = load(Sources::default()).expect("defaults are valid");
    let run = &settings.run;
    assert_eq!((run.preset.as_str(), run.top_k, run.retries, run.votes, run.controls), ("fair", 10, 6, 1, false));
    assert_eq!((run.system.as_str(), run.answerer.as_str(), run.judge.len()), ("bm25", "extractive", 0));
    assert_eq!((settings.store_url.as_str(), settings.queue_url.as_str()), ("sqlite:.bench/bench.db", "memory:"));
    assert_eq!(settings.backoff.initial_interval, Duration::from_millis(500));
    assert!(settings.section("sim").is_empty(), "owners keep their own defaults");
}

#[test]
fn layers_lie_in_the_documented_order() {
    let text = "[run]\ntop_k = 1\nvotes = 3\nretries = 1\nsystem = 'none'\n[profile.ci.run]\ntop_k = 2\nvotes = 5\nretries = 2\n";
    let with = |profile: Option<&str>, sets: &[&str], flags: Vec<FlagValue>| {
        let profile = profile.map(str::to_owned);
        let settings = load(Sources { file: file(text), profile, sets: words(sets), flags, ..Sources::default() });
        let settings = settings.expect("valid");
        let shown = |key: &str| {
            let entry = settings.entry(key).expect("is set");
            format!("{} ({})", entry.value.shown(), entry.origin)
        };
        [shown("run.top_k"), shown("run.votes"), shown("run.retries"), shown("run.system"), shown("run.pool")]
            .join(", ")
    };
    insta::assert_snapshot!(with(None, &[], vec![]), @"1 (bench.toml:2), 3 (bench.toml:3), 1 (bench.toml:4), none (bench.toml:5), default (default)");
    insta::assert_snapshot!(with(Some("ci"), &[], vec![]), @"2 (bench.toml:7 (profile ci)), 5 (bench.toml:8 (profile ci)), 2 (bench.toml:9 (profile ci)), none (bench.toml:5), default (default)");
    let sets = ["run.top_k=7", "run.votes=1", "run.votes=9"];
    insta::assert_snapshot!(with(Some("ci"), &sets, vec![FlagValue::new("run.top_k", "--top-k", "8")]), @"8 (--top-k), 9 (--set run.votes), 2 (bench.toml:9 (profile ci)), none (bench.toml:5), default (default)");
}

#[test]
fn environment_beats_the_file_and_flags_beat_the_environment() {
    let variables = [
        ("BENCH_STORE_URL", "postgres://bench:secret@db/bench"),
        ("BENCH_QUEUE_URL", ""),
        ("BENCH_HOME", "/var/bench"),
    ];
    let env = env(&variables);
    let text = "home = 'here'\n[store]\nurl = 'sqlite:a.db'\n[queue]\nurl = 'amqp://mq'\n";
    let settings = load(Sources { file: file(text), env: &env, ..Sources::default() }).expect("valid");
    assert_eq!(settings.store_url, "postgres://bench:secret@db/bench");
    assert_eq!(settings.queue_url, "amqp://mq", "an empty variable is not set");
    assert_eq!(settings.home.to_str(), Some("/var/bench"));
    let flags = vec![FlagValue::new("store.url", "--store", "sqlite:/b.db")];
    let settings = load(Sources { file: file(text), env: &env, flags, ..Sources::default() }).expect("valid");
    assert_eq!(settings.store_url, "sqlite:/b.db");
}

#[test]
fn the_default_store_follows_home() {
    let variables = [("BENCH_HOME", "/var/bench")];
    let settings = load(Sources { env: &env(&variables), ..Sources::default() }).expect("valid");
    assert_eq!(settings.store_url, "sqlite:/var/bench/bench.db");
    assert_eq!(settings.entry("store.url").expect("is set").origin.to_string(), "follows home");
}

#[test]
fn show_prints_names_values_and_origins_without_secrets() {
    let variables = [
        ("BENCH_STORE_URL", "postgres://bench:hunter2@db/bench"),
        ("OPENAI_API_KEY", "sk-hunter2"),
        ("BENCH_JUDGE_API_KEY", "sk-hunter2-judge"),
        ("BENCH_JUDGE_BASE_URL", "https://judge.example/v1"),
    ];
    let text = "[run]\ndataset = 'locomo'\nmax_cost = 2.5\n\n[profile.ci]\nrun.preset = 'quick'\naccounts.eu.api_key_file = '/run/key'\n";
    let sources = || Sources {
        file: file(text),
        profile: Some("ci".into()),
        sets: words(&["sim.conversations=200"]),
        flags: vec![FlagValue::new("run.top_k", "--top-k", "20")],
        extra: of_sim(),
        ..Sources::default()
    };
    let env = env(&variables);
    let settings = load(Sources { env: &env, ..sources() }).expect("valid");
    insta::assert_snapshot!("show", render(&settings.show(false)));
    insta::assert_snapshot!("show_all", render(&settings.show(true)));
    for leak in [render(&settings.show(true)), format!("{settings:?}"), format!("{:?}", settings.show(true))] {
        assert!(!leak.contains("hunter2"), "{leak}");
    }
}

#[test]
fn a_cap_is_in_dollars_or_in_what_is_used_and_the_last_word_is_the_whole_cap() {
    let text = "[run]\nmax_cost = '2_000_000 tokens'\n";
    let of_file = load(Sources { file: file(text), ..Sources::default() }).expect("valid").run;
    let cap = of_file.max_usage.expect("a cap");
    assert_eq!((cap.to_string().as_str(), of_file.max_cost, of_file.unpriced_ok), ("2000000 tokens", None, true));
    let flags = vec![FlagValue::new("run.max_cost", "--max-cost", "5")];
    let of_flag = load(Sources { file: file(text), flags, ..Sources::default() }).expect("valid").run;
    assert_eq!((of_flag.max_usage, of_flag.unpriced_ok), (None, false));
    assert_eq!(of_flag.max_cost.map(|cap| cap.usd()), Some(5.0));
}

#[test]
fn problems_name_file_line_and_column_and_what_to_do() {
    let text = "\
colour = true
[run]
top_k = 'ten'
top-k = 5
preset = 'fiar'
votes = 2
max_cost = -1
judge = [1]
[runn]
x = 1
[store]
url = 5
[answerer]
api_key = 'sk-secret'
account = 'opnai'
[accounts.eu]
api_key = 'sk-secret'
base_url = 'no scheme'
[backoff]
max_interval = 5
[profile.ci.worker]
slosts = 3
";
    let variables = [("BENCH_QUEUE_URL", "rabbit")];
    let sources = Sources {
        file: file(text),
        profile: Some("cI".into()),
        env: &env(&variables),
        sets: words(&["run.top_k", "top_k=5", "run.top_k=0", "judge.api_key=sk-secret", "run.retries=-1"]),
        flags: vec![FlagValue::new("run.max_cost", "--max-cost", "lots")],
        ..Sources::default()
    };
    let message = load(sources).expect_err("must be refused");
    assert!(!message.contains("sk-secret"));
    insta::assert_snapshot!(message, @r#"
    bench.toml:1:1: unknown setting 'colour'; `bench-coord config show --all` lists all
    bench.toml:3:9: run.top_k is "ten", expected a whole number from 1 to 10000
    bench.toml:4:1: unknown setting 'run.top-k' (did you mean 'run.top_k'?); `bench-coord config show --all` lists all
    bench.toml:5:10: run.preset is "fiar", expected one of quick, fair, fair-2, full
    bench.toml:7:12: run.max_cost is -1, expected an amount of dollars such as 20 or 0.5, or "500calls", or "2000000tokens"
    bench.toml:8:9: run.judge is a TOML array, expected a list of texts such as ["a", "b"]
    bench.toml:9:2: unknown setting 'runn' (did you mean 'run'?); `bench-coord config show --all` lists all
    bench.toml:12:7: store.url is 5, expected a URL with its scheme, such as "sqlite:bench.db"
    bench.toml:14:1: answerer.api_key would put a key where others can read it; set an environment variable, or name one with accounts.NAME.api_key_env, or a file with accounts.NAME.api_key_file
    bench.toml:17:1: accounts.eu.api_key would put a key where others can read it; set an environment variable, or name one with accounts.NAME.api_key_env, or a file with accounts.NAME.api_key_file
    bench.toml:18:12: accounts.eu.base_url is no URL (it may hold a secret and is not shown), expected an http:// or https:// URL, such as "http://localhost:8000/v1"
    bench.toml:20:16: backoff.max_interval is 5, expected a duration such as "500ms", "2s" or "15m"
    bench.toml:22:1: unknown setting 'worker.slosts' (did you mean 'worker.slots'?); `bench-coord config show --all` lists all
    --profile cI: bench.toml has no such profile (did you mean 'ci'?); profiles: ci
    environment BENCH_QUEUE_URL: queue.url is no URL (it may hold a secret and is not shown), expected a URL with its scheme, such as "memory:"
    --set needs key=value, such as --set run.top_k=20; 'run.top_k' has no '='
    --set top_k: unknown setting 'top_k' (did you mean 'run.top_k'?); `bench-coord config show --all` lists all
    --set run.top_k: run.top_k is "0", expected a whole number from 1 to 10000
    --set judge.api_key: judge.api_key would put a key where others can read it; set an environment variable, or name one with accounts.NAME.api_key_env, or a file with accounts.NAME.api_key_file
    --set run.retries: run.retries is "-1", expected a whole number from 0 to 1000
    --max-cost: run.max_cost is "lots", expected an amount of dollars such as 20 or 0.5, or "500calls", or "2000000tokens"
    bench.toml:6: run.votes is 2, expected an odd number
    bench.toml:15: answerer.account names the account 'opnai', which has no [accounts.opnai] section (did you mean 'openai'?); accounts: anthropic, azure, openai
    "#);
}

#[test]
fn broken_files_are_named_with_their_place_and_without_their_text() {
    let broken = |text: &str| load(Sources { file: file(text), ..Sources::default() }).expect_err("must be refused");
    let messages = [broken("[run]\ntop_k = \n"), broken("a = 'sk-secret\n"), broken("[run]\ntop_k = 1\ntop_k = 2\n")];
    assert!(!messages.join("\n").contains("sk-secret"));
    insta::assert_snapshot!(messages.join("\n"), @"
    bench.toml:2:9: string values must be quoted, expected literal string
    bench.toml:1:15: invalid literal string, expected `'`
    bench.toml:3:1: duplicate key
    ");
}

#[test]
fn a_profile_needs_a_file() {
    let error = load(Sources { profile: Some("ci".into()), ..Sources::default() }).expect_err("must be refused");
    insta::assert_snapshot!(error, @"--profile ci: there is no configuration file; write bench.toml or give one with --config");
}

#[test]
fn a_base_url_without_its_scheme_is_refused_with_the_one_that_was_meant() {
    for (text, meant) in [
        ("localhost:8080/v1", "did you mean http://localhost:8080/v1?"),
        ("127.0.0.1:8080/v1", "did you mean http://127.0.0.1:8080/v1?"),
        ("vllm/v1", "did you mean http://vllm/v1?"),
        ("api.example.org/v1", "did you mean https://api.example.org/v1?"),
        ("ftp://example.org/v1", "an http:// or https:// URL"),
    ] {
        let variables = [("OPENAI_BASE_URL", text)];
        let message = load(Sources { env: &env(&variables), ..Sources::default() }).expect_err("must be refused");
        assert!(message.contains(meant), "{message}");
    }
}

#[test]
fn p12_a_pool_whose_queues_no_broker_takes_is_refused() {
    let of = |pool: &str| {
        let flags = vec![FlagValue::new("run.pool", "--pool", pool)];
        load(Sources { flags, ..Sources::default() }).map(|settings| settings.run.pool)
    };
    assert_eq!(of("gpu").as_deref(), Ok("gpu"));
    for wrong in ["p".repeat(300), " ".to_owned(), "a\u{7}".to_owned()] {
        let message = of(&wrong).expect_err("must be refused");
        assert!(message.ends_with("expected a name of 1 to 200 bytes, of printable characters"), "{message}");
    }
    let number = load(Sources { file: file("[run]\npool = 5\n"), ..Sources::default() }).expect("valid");
    assert_eq!(number.run.pool, "5");
}

#[test]
fn p32_a_key_is_only_used_with_its_own_base_url() {
    let secret = |account: &Account| account.key.secret().map(|key| key.expose_secret().to_owned());
    let of = |variables: &[(&str, &str)]| {
        let account = load(Sources { env: &env(variables), ..Sources::default() })
            .expect("valid")
            .account_of(ModelRole::Answerer);
        (account.name.clone(), account.base_url.clone().unwrap_or_default(), secret(&account))
    };
    let openai = ("OPENAI_API_KEY", "sk-openai");
    let public = "https://api.openai.com/v1".to_owned();
    assert_eq!(of(&[openai]), ("openai".into(), public.clone(), Some("sk-openai".into())));
    let local = ("BENCH_ANSWERER_BASE_URL", "http://localhost:8000/v1");
    assert_eq!(of(&[openai, local]), ("answerer".into(), local.1.into(), None), "the key of openai stays with openai");
    let own = ("BENCH_ANSWERER_API_KEY", "sk-own");
    assert_eq!(of(&[openai, local, own]), ("answerer".into(), local.1.into(), Some("sk-own".into())));
    assert_eq!(of(&[openai, own]), ("answerer".into(), public.clone(), Some("sk-own".into())));
    let other = ("OPENAI_BASE_URL", "http://proxy/v1");
    assert_eq!(of(&[openai, other]), ("openai".into(), other.1.into(), Some("sk-openai".into())));
    assert_eq!(of(&[]), ("openai".into(), public.clone(), None));
    let embedding = |variables: &[(&str, &str)]| {
        let settings = load(Sources { env: &env(variables), ..Sources::default() }).expect("valid");
        let account = settings.account_named(ModelRole::Embedder, "openai".to_owned());
        (account.name.clone(), account.base_url.clone().unwrap_or_default(), secret(&account))
    };
    let own = [("BENCH_EMBEDDER_BASE_URL", "http://localhost:9/v1"), ("BENCH_EMBEDDER_API_KEY", "sk-own")];
    assert_eq!(embedding(&[openai, own[0], own[1]]), ("embedder".into(), own[0].1.into(), Some("sk-own".into())));
    assert_eq!(embedding(&[openai]), ("openai".into(), public, Some("sk-openai".into())));
}

#[test]
fn streams_are_asked_for_their_use_unless_their_account_says_otherwise() {
    let text = "[accounts.openai]\nstream_usage = false\n[accounts.mine]\nbase_url = 'http://e/v1'\n[meter]\nhosts = ['box']\n";
    let settings = load(Sources { file: file(text), ..Sources::default() }).expect("valid");
    let asks = |name: &str| settings.accounts[name].stream_usage;
    assert_eq!([asks("openai"), asks("mine"), asks("anthropic")], [false, true, true]);
    assert_eq!(settings.meter.hosts, ["box"]);
}

#[test]
fn an_account_lets_through_the_parameters_that_it_lists() {
    let text =
        "[accounts.openai]\nparameters = ['chat_template', 'documents']\n[accounts.mine]\nparameters = 'options'\n";
    let settings = load(Sources { file: file(text), ..Sources::default() }).expect("valid");
    let parameters = |name: &str| settings.accounts[name].parameters.clone();
    assert_eq!(parameters("openai"), ["chat_template", "documents"]);
    assert_eq!((parameters("mine"), parameters("anthropic")), (vec!["options".to_owned()], Vec::new()));
    let own = env(&[("BENCH_ANSWERER_BASE_URL", "http://localhost:8000/v1")]);
    let settings = load(Sources { file: file(text), env: &own, ..Sources::default() }).expect("valid");
    let of_answerer = settings.account_of(ModelRole::Answerer).parameters;
    assert!(of_answerer.is_empty(), "another server's operator has said nothing: {of_answerer:?}");
}

#[test]
fn an_account_of_a_role_lets_through_what_is_said_under_its_name_and_takes_nothing_else_from_there() {
    let text = "[accounts.openai]\nparameters = ['chat_template']\n\
                [accounts.answerer]\nparameters = ['documents']\nbase_url = 'http://elsewhere/v1'\nrpm = 5\napi_key_env = 'ELSEWHERE'\n";
    let of = |variables: &[(&str, &str)]| {
        let settings = load(Sources { file: file(text), env: &env(variables), ..Sources::default() }).expect("valid");
        settings.account_of(ModelRole::Answerer)
    };
    let (elsewhere, key) = (("ELSEWHERE", "sk-elsewhere"), ("BENCH_ANSWERER_API_KEY", "sk-own"));
    let own = of(&[elsewhere, ("BENCH_ANSWERER_BASE_URL", "http://localhost:8000/v1")]);
    assert_eq!((own.name.as_str(), own.base_url.as_deref()), ("answerer", Some("http://localhost:8000/v1")));
    assert_eq!((own.parameters, own.rpm, own.key.secret().is_some()), (vec!["documents".to_owned()], None, false));
    let of_key = of(&[elsewhere, key]);
    assert_eq!(of_key.base_url.as_deref(), Some("https://api.openai.com/v1"));
    assert_eq!(of_key.parameters, ["documents", "chat_template"], "it is the server of openai");
    assert_eq!(of_key.key.secret().map(|key| key.expose_secret().to_owned()).as_deref(), Some("sk-own"));
}

#[test]
fn keys_come_from_the_named_variable_or_file_and_missing_ones_say_why() {
    let text = "[accounts.a]\napi_key_env = 'A_KEY'\n[accounts.b]\napi_key_file = '/keys/b'\n[accounts.c]\napi_key_file = '/keys/c'\n\
                [accounts.d]\napi_key_env = 'D_KEY'\n[accounts.e]\nbase_url = 'http://e/v1'\n";
    let variables = [("A_KEY", "from-env\n")];
    let read = |path: &std::path::Path| match path.to_str() {
        Some("/keys/b") => Ok("from-file\n".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let settings =
        load(Sources { file: file(text), env: &env(&variables), read_key_file: &read, ..Sources::default() })
            .expect("valid");
    let lines: Vec<String> = settings
        .accounts
        .values()
        .map(|account| match &account.key {
            ApiKey::Set(secret, origin) => format!("{}: {} from {origin}", account.name, secret.expose_secret()),
            ApiKey::Missing(why) => format!("{}: {why}", account.name),
            ApiKey::None => format!("{}: none", account.name),
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    a: from-env from environment A_KEY
    anthropic: the environment variable ANTHROPIC_API_KEY is not set
    azure: the environment variable AZURE_OPENAI_API_KEY is not set
    b: from-file from /keys/b
    c: the key file /keys/c cannot be read: entity not found
    d: the environment variable D_KEY is not set
    e: none
    openai: the environment variable OPENAI_API_KEY is not set
    ");
}

#[test]
fn sections_of_datasets_and_systems_are_handed_over_as_set() {
    let mut extra = of_sim();
    extra.push(ExtraKey { name: "theirs.*".into(), default: None });
    let text = "[sim]\nconversations = 5\n[theirs]\ndeep.name = 'x'\n";
    let sets = words(&["sim.seed=abc", "bm25.k1=0.9"]);
    let settings = load(Sources { file: file(text), sets, extra, ..Sources::default() }).expect("valid");
    assert_eq!(
        serde_json::to_string(&settings.section("sim")).expect("serialises"),
        r#"{"conversations":5,"seed":"abc"}"#
    );
    assert_eq!(serde_json::to_string(&settings.section("bm25")).expect("serialises"), r#"{"k1":0.9}"#);
    assert_eq!(serde_json::to_string(&settings.section("theirs")).expect("serialises"), r#"{"deep.name":"x"}"#);
    assert!(settings.is_set("sim.seed") && !settings.is_set("sim.noise") && !settings.is_set("run.preset"));
}

#[test]
fn a_program_that_leaves_others_their_sections_still_knows_its_own() {
    let read = |text: &str| {
        let extra = vec![ExtraKey { name: "*".into(), default: None }];
        load(Sources { file: file(text), profile: Some("p".into()), extra, ..Sources::default() })
    };
    let theirs = "[horizon]\nturns = 300\n[profile.p.beam]\njudge_without_halves = true\n";
    assert_eq!(read(theirs).expect("somebody else's").run.top_k, 10);
    for ours in ["run.topk = 1", "runn.top_k = 1", "[modles]\nlook_first = true", "colour = 1", "[worker]\nslosts = 1"]
    {
        assert!(read(&format!("{ours}\n[profile.p]\n")).expect_err(ours).contains("unknown setting"), "{ours}");
    }
}

#[test]
fn flags_with_several_values_make_a_list() {
    let flag = |values: &[&str]| FlagValue { key: "run.judge".into(), flag: "--judge".into(), values: words(values) };
    let judges = |flags| load(Sources { flags, ..Sources::default() }).expect("valid").run.judge;
    assert_eq!(judges(vec![flag(&["openai:a", "openai:b"])]), ["openai:a", "openai:b"]);
    assert_eq!(judges(vec![flag(&["openai:a,openai:b"])]), ["openai:a", "openai:b"]);
}

#[test]
fn a_file_that_was_asked_for_must_be_there() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("mine.toml");
    let line = CommandLine { config: Some(path.clone()), ..CommandLine::default() };
    let error = from_process(line.clone(), Vec::new()).expect_err("must be refused").to_string();
    assert!(error.contains("mine.toml") && error.contains("--config"), "{error}");
    std::fs::write(&path, "[run]\ntop_k = 3\n").expect("can write");
    assert_eq!(from_process(line, Vec::new()).expect("valid").run.top_k, 3);
}

#[test]
fn p42_what_is_allowed_is_read_from_file_and_environment_and_mistakes_have_their_place() {
    let hash = "0123456789ABCDEF".repeat(4);
    let text = format!("[allow]\nsystems = ['{hash}']\nhosts = ['Mem.Example:80']\nsecrets = ['KEY@Mem.Example']\n");
    let allow = load(Sources { file: file(&text), ..Sources::default() }).expect("valid").allow;
    assert_eq!((allow.any, allow.systems.as_slice()), (false, &[hash.to_lowercase()][..]));
    assert_eq!(
        (allow.hosts.as_slice(), allow.secrets.as_slice()),
        (&words(&["mem.example:80"])[..], &words(&["KEY@mem.example"])[..])
    );
    let any = load(Sources { sets: words(&["allow.systems=any"]), ..Sources::default() }).expect("valid").allow;
    assert!(any.any && any.systems.is_empty());
    assert_eq!(load(Sources::default()).expect("valid").allow, bench_proto::policy::SystemPolicy::default());
    for (set, expected) in [("allow.systems=mine", "systems hash FILE"), ("allow.secrets=KEY", "NAME@host")] {
        let refused = load(Sources { sets: words(&[set]), ..Sources::default() }).expect_err("is refused").to_string();
        assert!(refused.contains(expected) && refused.contains("--set"), "{refused}");
    }
}

#[test]
fn passwords_are_shown_by_no_setting_and_no_message() {
    let file = Some((
        "bench.toml".to_owned(),
        "[store]\nurl = 'postgres://u:12/s3cret@db/b'\n[queue]\nurl = 'amqp://u:s3cret@mq'\n\
         [archive]\nurl = 's3://key:s3cret@bucket/x'\n[answerer]\nbase_url = 'https://api.example/v1?key=s3cret'\n"
            .to_owned(),
    ));
    let settings = Settings::load(&Sources { file, ..Sources::default() }).expect("loads");
    let shown = format!("{}{settings:?}", render(&settings.show(true)));
    assert!(!shown.contains("s3cret"), "{shown}");
    // what is shown is not what is used
    assert_eq!(settings.archive_url.as_deref(), Some("s3://key:s3cret@bucket/x"));
    for set in [
        "judge.base_url=ftp://u:s3cret@x",
        "judge.base_url=s3cret",
        "judge.base_url=x.example?key=s3cret",
        "store.url=s3cret",
    ] {
        let sources = Sources { sets: vec![set.to_owned()], ..Sources::default() };
        let message = Settings::load(&sources).expect_err("is refused").to_string();
        assert!(!message.contains("s3cret"), "{message}");
    }
}
