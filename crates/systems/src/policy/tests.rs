use super::*;
use crate::{BuildContext, adapter::file, registry};

const CALLS: &str = "
retain: {request: POST /add, body: {text: '{text}'}}
recall: {request: POST /search, body: {query: '{query}'}, hits: [{list: results, text: memory}]}
";

fn settings(text: &str, more: &[(&str, &str)]) -> SystemSettings {
    let is_other = |line: &str| line.starts_with("command:") || line.starts_with("mcp:");
    let calls = if text.lines().any(is_other) { "" } else { CALLS };
    let spec = file::parse(&format!("name: mine\n{text}{calls}")).expect("reads");
    let adapter = serde_json::to_value(&spec).expect("serialises");
    let more = more.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
    std::iter::once((adapter::ADAPTER.to_owned(), adapter)).chain(more).collect()
}

fn listed(change: impl FnOnce(&mut SystemPolicy)) -> Policy {
    let mut policy = SystemPolicy::default();
    change(&mut policy);
    Policy::new(policy)
}

fn lacks(policy: &Policy, settings: &SystemSettings) -> Vec<String> {
    match policy.check(settings) {
        Ok(()) => Vec::new(),
        Err(refusal) => refusal.lacks.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn p42_by_default_shipped_adapters_and_public_servers_without_secrets_are_taken_and_nothing_else() {
    let policy = Policy::default();
    let refused = |text: &str| lacks(&policy, &settings(text, &[]));
    for (name, text) in adapter::shipped::SHIPPED {
        let spec = serde_json::to_value(file::parse(text).expect("reads")).expect("serialises");
        let settings = SystemSettings::from([(adapter::ADAPTER.to_owned(), spec)]);
        assert_eq!(lacks(&policy, &settings), [""; 0], "{name}");
    }
    assert_eq!(lacks(&policy, &SystemSettings::new()), [""; 0], "built-in systems are no adapters");
    assert_eq!(refused("url: https://mem.example/v1\n"), [""; 0]);
    assert_eq!(refused("url: http://mem.example\n"), ["asks mem.example:80"]);
    for (place, asked) in [
        ("http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("https://localhost", "localhost:443"),
        ("https://10.1.2.3:8443", "10.1.2.3:8443"),
        ("https://[::1]", "[::1]:443"),
        ("http://2130706433:80", "127.0.0.1:80"),
    ] {
        assert_eq!(refused(&format!("url: '{place}'\n")), [format!("asks {asked}")], "{place}");
    }
    assert_eq!(refused("url: https://mem.example\nallow: [private_addresses]\n"), ["asks mem.example:443"]);
    assert_eq!(refused("url: https://mem.example\nauth: {env: PATH}\n"), ["sends the secret PATH to mem.example:443"]);
    assert_eq!(
        refused("url: https://mem.example\nauth: {file: /etc/passwd}\n"),
        ["sends the secret /etc/passwd to mem.example:443"]
    );
    assert_eq!(
        refused("url: 'https://mem.example/${env:PATH:-x}'\nheaders: {X-A: '${env:HOME:-x}'}\n"),
        ["sends the secret HOME to mem.example:443", "sends the secret PATH to mem.example:443"]
    );
    assert_eq!(refused("command: [python3, 'my memory.py']\n"), ["runs python3 \"my memory.py\""]);
    let code = "command: [python3]\ncode: {folder: ., file: mine.py, class: Mine, files: {mine.py: 'pass'}}\n";
    assert_eq!(refused(code), ["runs python3", "brings the code of mine.py"], "a command line does not say which");
    assert_eq!(refused("start: {image: 'mem:1'}\n"), ["starts the container mem:1"]);
    assert_eq!(refused("start: {command: [mem], check: [mem, --can]}\n"), ["runs mem", "runs mem --can"]);
    assert_eq!(
        refused(
            "start: {command: [mem], env: {LD_PRELOAD: /tmp/x.so}, files: {a: b}, port: 6379}\nauth: {env: PATH}\n"
        ),
        [
            "runs mem",
            "reads the variable PATH",
            "asks port 6379, whoever listens there",
            "sets the variable LD_PRELOAD",
            "writes files of its own beside what it starts"
        ]
    );
}

#[test]
fn p42_a_server_of_tools_is_looked_at_as_other_programs_and_servers_are() {
    let of = |policy: &Policy, text: &str, more: &[(&str, &str)]| lacks(policy, &settings(text, more));
    let refused = |text: &str| of(&Policy::default(), text, &[]);
    let program = "mcp: {command: [python3, notes.py]}\nenv: {LD_PRELOAD: /tmp/x.so, HOME: '${env:HOME}'}\n";
    assert_eq!(refused(program), ["runs python3 notes.py", "reads the variable HOME", "sets the variable LD_PRELOAD"]);
    let elsewhere = [(adapter::URL, "https://mem.example")];
    assert_eq!(of(&Policy::default(), program, &elsewhere).len(), 3, "it is a program wherever it is pointed");
    let line = listed(|policy| policy.commands = vec!["python3 notes.py".to_owned()]);
    assert_eq!(of(&line, "mcp: {command: [python3, notes.py]}\n", &[]), [""; 0]);
    assert_eq!(refused("mcp: {url: 'https://mem.example/mcp'}\n"), [""; 0]);
    assert_eq!(refused("mcp: {url: 'http://127.0.0.1:8000/mcp'}\n"), ["asks 127.0.0.1:8000"]);
    assert_eq!(
        refused("mcp: {url: 'https://mem.example/${env:PATH}'}\nauth: {env: HOME}\n"),
        ["sends the secret HOME to mem.example:443", "sends the secret PATH to mem.example:443"]
    );
    let server = "mcp: {url: 'https://mem.example/mcp'}\n";
    assert_eq!(of(&Policy::default(), server, &[(adapter::URL, "http://10.0.0.1/mcp")]), ["asks 10.0.0.1:80"]);
}

#[test]
fn p42_an_adapter_is_allowed_by_its_hash_which_covers_all_of_it_but_where_else_it_is_pointed() {
    let text = "url: http://127.0.0.1:9\nauth: {env: PATH}\n";
    let mine = settings(text, &[]);
    let hash = SystemHash::of_settings(&mine).expect("an adapter");
    let policy = listed(|policy| policy.systems = vec![hash.hex()]);
    assert_eq!(lacks(&policy, &mine), [""; 0]);
    for other in ["url: http://127.0.0.1:8\nauth: {env: PATH}\n", "url: http://127.0.0.1:9\nauth: {env: HOME}\n"] {
        assert!(!lacks(&policy, &settings(other, &[])).is_empty(), "{other}");
    }
    assert!(!lacks(&policy, &settings(text, &[(adapter::MODE, "consolidated")])).is_empty(), "another mode");
    assert_eq!(lacks(&policy, &settings(text, &[(adapter::MODE, "raw")])), [""; 0], "the mode that is meant anyway");
    let moved = settings(text, &[(adapter::URL, "https://evil.example")]);
    assert_eq!(lacks(&policy, &moved), ["sends the secret PATH to evil.example:443"]);
    let refusal = policy.check(&moved).expect_err("refused");
    assert_eq!(refusal.settings(), [("secrets", vec!["PATH@evil.example:443".to_owned()])]);
    let paired = listed(|policy| {
        policy.systems = vec![hash.hex()];
        policy.secrets = vec!["PATH@evil.example".to_owned()];
    });
    assert_eq!(lacks(&paired, &moved), [""; 0]);
    let trusting = Policy::default().trusting(hash, None);
    assert_eq!((lacks(&trusting, &mine).len(), lacks(&trusting, &moved).len()), (0, 1), "what a person has named");
}

#[test]
fn p42_a_variable_says_where_a_url_leads_only_when_it_is_listed_and_no_message_holds_its_value() {
    // a variable that is there in every test: what it holds stands for a key
    let value = env!("CARGO_MANIFEST_DIR");
    let says = |policy: &Policy, url: &str| {
        let settings = settings(&format!("url: '{url}'\nheaders: {{X-A: '${{env:HOME:-x}}'}}\n"), &[]);
        let refusal = policy.check(&settings).expect_err("is refused");
        assert!(!format!("{refusal} {}", refusal.lines()).to_lowercase().contains(&value.to_lowercase()), "{refusal}");
        refusal.lacks.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for url in [
        "sqlite:${env:CARGO_MANIFEST_DIR}",
        "file:///${env:CARGO_MANIFEST_DIR}",
        "memory://a/${env:CARGO_MANIFEST_DIR:-x}",
        "${env:CARGO_MANIFEST_DIR}",
        "https://${env:CARGO_MANIFEST_DIR}.example",
        "https://a.example${env:CARGO_MANIFEST_DIR}/v1",
        "https:///${env:CARGO_MANIFEST_DIR}/v1",
        "https:/a.example/${env:CARGO_MANIFEST_DIR}",
        "https://u:${env:CARGO_MANIFEST_DIR}@a.example/",
        "https://a.example:${env:CARGO_MANIFEST_DIR}/",
        "https://\\\\a.example/${env:CARGO_MANIFEST_DIR}",
    ] {
        assert_eq!(says(&Policy::default(), url), ["reads the variable CARGO_MANIFEST_DIR"], "{url}");
    }
    let listed = listed(|policy| policy.variables = vec!["CARGO_PKG_NAME".to_owned()]);
    assert_eq!(
        says(&listed, "http://${env:CARGO_PKG_NAME}.example/${env:CARGO_MANIFEST_DIR}"),
        [
            "asks http://${env:CARGO_PKG_NAME}.example/",
            "sends the secret CARGO_MANIFEST_DIR to http://${env:CARGO_PKG_NAME}.example/",
            "sends the secret HOME to http://${env:CARGO_PKG_NAME}.example/",
        ],
        "a name that is listed may be a key all the same"
    );
}

#[test]
fn p42_a_secret_inside_of_the_default_of_another_one_is_no_way_around_its_pair() {
    let policy = listed(|policy| policy.secrets = vec!["HOME@mem.example".to_owned()]);
    let nested = settings("url: https://mem.example\nheaders: {X-A: '${env:PATH:-${env:HOME}}'}\n", &[]);
    let context = BuildContext { policy: policy.into(), ..BuildContext::default() };
    let refused = registry::build("mine", &nested, &context).err().expect("is refused").to_string();
    assert!(refused.contains("inside of another one"), "{refused}");
    let spec = file::parse("name: mine\nurl: 'https://a.example/${env:A:-${env:B}}'\n").expect("reads");
    assert!(adapter::check(&spec).is_err_and(|error| error.contains("inside of another one")), "also before a run");
}

#[test]
fn p42_a_shipped_adapter_takes_its_key_nowhere_else() {
    let (_, text) = adapter::shipped::SHIPPED.iter().find(|(name, _)| *name == "supermemory").expect("is shipped");
    let spec = serde_json::to_value(file::parse(text).expect("reads")).expect("serialises");
    let url = Value::from("https://evil.example");
    let settings = SystemSettings::from([(adapter::ADAPTER.to_owned(), spec), (adapter::URL.to_owned(), url)]);
    assert_eq!(lacks(&Policy::default(), &settings), ["sends the secret SUPERMEMORY_API_KEY to evil.example:443"]);
}

#[test]
fn p42_what_is_listed_one_by_one_allows_that_and_no_more() {
    let policy = listed(|policy| {
        policy.commands = vec!["mem --port {port}".to_owned()];
        policy.images = vec!["mem:1".to_owned()];
        policy.variables = vec!["MEM_KEY".to_owned(), "MEM_URL".to_owned()];
        policy.files = vec!["/run/key".to_owned()];
        policy.hosts = vec!["mem.internal:80".to_owned(), "127.0.0.1".to_owned()];
        policy.secrets = vec!["MEM_KEY@mem.internal".to_owned(), "/run/key@mem.internal:80".to_owned()];
    });
    for fine in [
        "start: {command: [mem, --port, '{port}'], env: {MEM_KEY: '${env:MEM_KEY}'}}\nauth: {file: /run/key}\n",
        "start: {image: 'mem:1'}\nauth: {env: MEM_KEY}\n",
        "url: http://mem.internal\nauth: {env: MEM_KEY}\n",
        "url: http://mem.internal\nauth: {file: /run/key}\n",
        "url: http://127.0.0.1:1234\n",
        "url: '${env:MEM_URL:-https://mem.example}'\n",
    ] {
        assert_eq!(lacks(&policy, &settings(fine, &[])), [""; 0], "{fine}");
    }
    for (bad, lack) in [
        ("start: {command: [mem, '--port {port}']}\n", "runs mem \"--port {port}\""),
        ("command: [mem, --port, '{port}']\nenv: {MEM_KEY: '${env:OTHER_KEY}'}\n", "sets the variable MEM_KEY"),
        ("start: {command: [mem, --port, '{port}']}\nauth: {env: HOME}\n", "reads the variable HOME"),
        ("url: http://mem.internal:8080\n", "asks mem.internal:8080"),
        (
            "url: http://127.0.0.1:80\nauth: {env: MEM_KEY, optional: false}\n",
            "sends the secret MEM_KEY to 127.0.0.1:80",
        ),
        ("url: '${env:PATH}'\n", "reads the variable PATH"),
    ] {
        assert_eq!(lacks(&policy, &settings(bad, &[])), [lack], "{bad}");
    }
}

#[test]
fn p42_a_command_line_is_listed_with_the_values_that_a_run_has_chosen() {
    let file = |values: &str| {
        format!(
            "command: [mem, --mode, '{{setting.mode}}']\nsettings: {{mode: {{about: how, type: text, values: [{values}], default: slow}}}}\n"
        )
    };
    let policy =
        listed(|policy| policy.commands = vec!["mem --mode slow".to_owned(), "mem --mode {setting.mode}".into()]);
    let chosen = |values: &str, value: &str| lacks(&policy, &settings(&file(values), &[("mine.mode", value)]));
    assert_eq!(lacks(&policy, &settings(&file("slow, fast"), &[])), [""; 0]);
    assert_eq!(chosen("slow, fast", "slow"), [""; 0]);
    assert_eq!(chosen("slow, fast", "fast"), ["runs mem --mode fast"]);
    // which values there are comes with the run too
    assert_eq!(chosen("slow, '--plugin=/tmp/x.so'", "--plugin=/tmp/x.so"), ["runs mem --mode --plugin=/tmp/x.so"]);
    assert_eq!(chosen("slow, '${env:HOME}'", "${env:HOME}"), ["runs mem --mode ${env:HOME}"]);
    assert!(chosen("slow, fast", "other")[0].starts_with("cannot be read: "));
}

#[test]
fn p42_others_are_told_enough_to_say_at_once_who_would_take_a_system() {
    let mine = settings("command: [python3, memory.py]\n", &[]);
    let hash = SystemHash::of_settings(&mine).expect("an adapter");
    let told = |policy: Policy| -> SystemPolicy {
        serde_json::from_str(&serde_json::to_string(&policy.told()).expect("serialises")).expect("reads")
    };
    assert!(would_take(&told(listed(|policy| policy.systems = vec![hash.hex()])), &mine).is_ok());
    assert!(would_take(&told(Policy::anything()), &mine).is_ok());
    let refusal = would_take(&told(Policy::default()), &mine).expect_err("refused");
    let lines = refusal.lines();
    for line in [
        format!("[allow]\n               systems = [\"{}\"]", hash.hex()),
        format!("worker: {{allow: {{systems: [\"{}\"]}}}}", hash.hex()),
        format!("BENCH_ALLOW_SYSTEMS={}", hash.hex()),
    ] {
        assert!(lines.contains(&line), "{lines}");
    }
    assert!(would_take(&told(Policy::default()), &settings("url: '${env:MEM_URL:-x}'\n", &[])).is_err());
    let shipped = told(Policy::default());
    assert!(serde_json::to_string(&shipped).expect("serialises").len() < 2048, "a session is small");
}

/// With `BENCH_BLESS=1` what is shipped now is added to the list; lines of earlier releases stay.
#[test]
fn p42_every_shipped_adapter_is_on_the_list() {
    let mut lines = String::new();
    for (name, text) in adapter::shipped::SHIPPED {
        let whole = file::parse(text).expect("reads");
        // a run that asks for no dispositions has the file without their list
        let mut spec = whole.clone();
        adapter::dispositions::take(&mut spec, None).expect("asks for nothing");
        let consolidates = spec.consolidate.is_some().then_some("consolidated");
        for mode in ["raw"].into_iter().chain(consolidates) {
            let settings = SystemSettings::from([(adapter::MODE.to_owned(), mode.into())]);
            let told = (whole != spec).then_some((&whole, "+dispositions"));
            for (spec, with) in [(&spec, "")].into_iter().chain(told) {
                let hash = SystemHash::compute(spec, &settings).hex();
                if !shipped().any(|listed| listed == hash) {
                    lines += &format!("{hash} {name} {mode}{with}\n");
                }
            }
        }
    }
    if std::env::var_os("BENCH_BLESS").is_some() && !lines.is_empty() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/adapter/shipped/hashes.txt");
        let before = std::fs::read_to_string(path).expect("reads");
        std::fs::write(path, before + &lines).expect("is written");
        return;
    }
    assert_eq!(
        lines, "",
        "BENCH_BLESS=1 adds what is new; when nothing was changed, a hash has changed that users have set"
    );
}

#[test]
fn p42_a_rehearsal_writes_into_no_folder_and_ends_no_process_unless_that_was_allowed() {
    let built = |policy: Policy, settings: &SystemSettings| {
        let context = BuildContext { policy: policy.into(), ..BuildContext::default() };
        registry::build("faulty", settings, &context).map(drop).map_err(|e| e.to_string())
    };
    let of = |name: &str, value: Value| SystemSettings::from([(name.to_owned(), value)]);
    let writes = of("faulty.memory", "/etc".into());
    let refused = built(Policy::default(), &writes).expect_err("refused");
    assert!(refused.contains("keeps its banks in /etc") && refused.contains("allow.files=/etc"), "{refused}");
    assert_eq!(built(listed(|policy| policy.files = vec!["/etc".to_owned()]), &writes), Ok(()));
    for share in ["0.5".into(), Value::from(1), "much".into()] {
        let kills = of("faulty.kill", share);
        let hash = SystemHash::of_settings(&kills).expect("is known by its settings");
        let refused = built(Policy::default(), &kills).expect_err("refused");
        let way = format!("allow.systems={}", hash.hex());
        assert!(refused.contains("ends the process that asks it") && refused.contains(&way), "{refused}");
        assert!(would_take(&Policy::default().told(), &kills).is_err(), "and it is said before");
        let listed = listed(|policy| policy.systems = vec![hash.hex()]);
        assert!(listed.check(&kills).is_ok() && would_take(&listed.told(), &kills).is_ok());
        assert!(Policy::default().trusting(hash, None).check(&kills).is_ok(), "a person's own rehearsal");
        assert!(listed.check(&writes).is_err());
    }
    for (name, value) in [("faulty.kill", "0"), ("faulty.memory", ""), ("faulty.panic", "1"), ("faulty.error", "1")] {
        let harmless = of(name, value.into());
        assert_eq!((SystemHash::of_settings(&harmless), built(Policy::default(), &harmless)), (None, Ok(())), "{name}");
    }
}
