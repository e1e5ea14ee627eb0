//! Memory servers that keep what they hold outside of their process: Hindsight, Mem0 and Letta over a PostgreSQL with pgvector,
//! Cognee in files. All are published packages, with their models and embeddings at the simulator.

use std::{collections::HashMap, net::TcpStream, path::Path};

use bench_testkit::{
    bench::Bench,
    cluster::Cluster,
    ports, postgres,
    process::{Process, mortal, wait_until},
    provider::{KEY, Provider},
    python::{self, Packages},
};
use serde_json::Value;

use super::{PATIENCE, astrocyte::assert_finds_the_same, killed_in_a_cluster, killed_while_filled, program, submit};

/// A server, and how it is started.
struct Server {
    /// Name of the shipped adapter.
    name: &'static str,
    shipped: &'static str,
    packages: Packages,
    /// What stands behind the Python that runs it.
    arguments: &'static [&'static str],
    /// Its variables, as a line of YAML.
    env: &'static str,
    /// Each bank has an instance of its own.
    per_bank: bool,
}

const HINDSIGHT: Server = Server {
    name: "hindsight",
    shipped: include_str!("../../../../../crates/systems/src/adapter/shipped/hindsight.yaml"),
    packages: python::HINDSIGHT,
    arguments: &["-m", "hindsight_api.main"],
    env: "{HINDSIGHT_API_PORT: '{port}', HINDSIGHT_API_HOST: 127.0.0.1, HINDSIGHT_API_DATABASE_URL: '${env:SERVER_DB}', \
          HINDSIGHT_API_LLM_PROVIDER: openai, HINDSIGHT_API_LLM_MODEL: gpt-4o-mini, \
          HINDSIGHT_API_LLM_BASE_URL: '${env:SIM_URL}', HINDSIGHT_API_LLM_API_KEY: '${env:SIM_KEY}', \
          HINDSIGHT_API_EMBEDDINGS_PROVIDER: openai, HINDSIGHT_API_EMBEDDINGS_OPENAI_BASE_URL: '${env:SIM_URL}', \
          HINDSIGHT_API_EMBEDDINGS_OPENAI_API_KEY: '${env:SIM_KEY}', HINDSIGHT_API_RERANKER_PROVIDER: rrf, \
          HINDSIGHT_API_ENABLE_AUTO_CONSOLIDATION: '${env:CONSOLIDATES}'}",
    per_bank: false,
};

const MEM0: Server = Server {
    name: "mem0",
    shipped: include_str!("../../../../../crates/systems/src/adapter/shipped/mem0.yaml"),
    packages: python::MEM0,
    arguments: &["mem0_server.py", "{port}"],
    env: "{MEM0_DATABASE_URL: '${env:SERVER_DB}', HISTORY_DB_PATH: '{dir}/history.db', MEM0_DIR: '{dir}', MEM0_TELEMETRY: 'false', \
          OPENAI_BASE_URL: '${env:SIM_URL}', OPENAI_API_KEY: '${env:SIM_KEY}'}",
    per_bank: false,
};

const COGNEE: Server = Server {
    name: "cognee",
    shipped: include_str!("../../../../../crates/systems/src/adapter/shipped/cognee.yaml"),
    packages: python::COGNEE,
    arguments: &["-m", "cognee.api.client"],
    // without access control it asks for no account, and does not keep datasets apart: instances do
    env: "{HTTP_API_HOST: 127.0.0.1, HTTP_API_PORT: '{port}', ENABLE_BACKEND_ACCESS_CONTROL: 'false', TELEMETRY_DISABLED: '1', \
          DATA_ROOT_DIRECTORY: '{dir}/data', SYSTEM_ROOT_DIRECTORY: '{dir}/system', HOME: '{dir}', \
          TIKTOKEN_CACHE_DIR: '${env:TOKENIZERS}', LLM_PROVIDER: openai, LLM_MODEL: openai/gpt-4o-mini, \
          LLM_ENDPOINT: '${env:SIM_URL}', LLM_API_KEY: '${env:SIM_KEY}', EMBEDDING_PROVIDER: openai, \
          EMBEDDING_MODEL: openai/text-embedding-3-small, EMBEDDING_DIMENSIONS: '1536', \
          EMBEDDING_ENDPOINT: '${env:SIM_URL}', EMBEDDING_API_KEY: '${env:SIM_KEY}'}",
    per_bank: true,
};

const LETTA: Server = Server {
    name: "letta",
    shipped: include_str!("../../../../../crates/systems/src/adapter/shipped/letta.yaml"),
    packages: python::LETTA,
    arguments: &["letta_server.py", "{port}"],
    env: "{LETTA_PG_URI: '${env:SERVER_DB}', HOME: '{dir}', OPENAI_BASE_URL: '${env:SIM_URL}', OPENAI_API_KEY: '${env:SIM_KEY}'}",
    per_bank: false,
};

impl Server {
    /// The shipped adapter, with a start of its own.
    fn adapter(&self, folder: &Path) -> String {
        let python = python::python(self.packages);
        let arguments = self.arguments.iter().map(|argument| match argument.ends_with(".py") {
            true => format!(", '{}'", program(argument)),
            false => format!(", '{argument}'"),
        });
        let start = format!(
            "name: {}-here\nstart:\n  command: ['{}'{}]\n  env: {}\n  timeout: 240s\n{}",
            self.name,
            python.display(),
            arguments.collect::<String>(),
            self.env,
            if self.per_bank { "  per: bank\n" } else { "" },
        );
        let path = folder.join(format!("{}.yaml", self.name));
        let text = self.shipped.replace(&format!("name: {}\n", self.name), &start);
        std::fs::write(&path, text).expect("the adapter can be written");
        path.display().to_string()
    }

    /// Variables that the adapter names; an empty database of its own is among them.
    fn variables(&self, provider: &Provider, consolidates: bool) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("SIM_URL", provider.base_url().to_owned()),
            ("SIM_KEY", KEY.to_owned()),
            ("CONSOLIDATES", consolidates.to_string()),
        ];
        if self.env.contains("SERVER_DB") {
            let url = postgres::with_vector().create_database().expect("a database");
            variables.push(("SERVER_DB", url.replacen("postgres://", "postgresql://", 1)));
        }
        if self.env.contains("TOKENIZERS") {
            variables.push(("TOKENIZERS", python::tokenizers().display().to_string()));
        }
        variables
    }

    fn bench(&self, provider: &Provider, consolidates: bool) -> Bench {
        let variables = self.variables(provider, consolidates).into_iter();
        variables.fold(Bench::new(), |bench, (name, value)| bench.with_env(name, value))
    }
}

/// The models that the servers name: Letta takes those that the provider lists.
fn provider() -> Provider {
    Provider::start(&[
        "--latency-ms",
        "20",
        "--price",
        "gpt-4o-mini=0.15/0.6",
        "--price",
        "text-embedding-3-small=0.02/0",
    ])
}

/// All steps of `systems check`, by their name; none has failed but those named.
fn checked(bench: &Bench, adapter: &str, flags: &[&str], fails: &[&str]) -> Value {
    let done = bench.run([&["systems", "check", adapter, "--json"][..], flags].concat());
    let report = done.json();
    let steps = report["steps"].as_array().expect("steps");
    let failed: Vec<&Value> = steps
        .iter()
        .filter(|step| step["outcome"] == "fail" && !fails.iter().any(|name| step["check"] == *name))
        .collect();
    assert!(failed.is_empty() && steps.len() > 10, "{failed:#?}\n{}", done.stderr);
    let by_name = |step: &Value| (step["check"].as_str().expect("a name").to_owned(), step.clone());
    steps.iter().map(by_name).collect::<serde_json::Map<_, _>>().into()
}

/// It passes the checks but those that may fail, as no model thinks here; killed while it is filled, it holds and finds what an
/// undisturbed run finds.
fn checked_killed_and_undisturbed(server: &Server, may_fail: &[&str]) {
    let provider = provider();
    let bench = server.bench(&provider, false);
    let adapter = server.adapter(bench.path());
    let _steps = checked(&bench, &adapter, &[], may_fail);
    let killed = killed_while_filled(&bench, &submit(&adapter, "killed"), "killed", 3).expect_code(0).json();
    assert_eq!(killed["outcomes"]["coverage"], 1.0, "{killed}");
    for figure in ["lost", "leaked", "clipped"] {
        assert_eq!(killed["canaries"][figure]["n"], 0, "{figure}: {}", killed["canaries"]);
    }
    let _ = bench.run(submit(&adapter, "undisturbed")).expect_code(0);
    assert_finds_the_same(&bench.questions("killed"), &bench.questions("undisturbed"));
}

/// The same over RabbitMQ and Postgres, with two workers.
fn killed_between_workers(server: &Server) {
    let provider = provider();
    // it is no shipped file: whoever operates the workers has to allow it
    let cluster = Cluster::new().with_env("BENCH_ALLOW_SYSTEMS", "any");
    let variables = server.variables(&provider, false).into_iter();
    let cluster = variables.fold(cluster, |cluster, (name, value)| cluster.with_key(name, &value));
    let here = server.adapter(cluster.bench().path());
    let done = killed_in_a_cluster(&cluster, &submit(&here, "run"), 3).expect_code(0).json();
    assert_eq!(done["outcomes"]["coverage"], 1.0, "{done}");
    assert_eq!(done["canaries"]["lost"]["n"], 0, "{}", done["canaries"]);
}

/// It is ready when what it works on behind its replies has ended, and not a minute later.
#[test]
fn hindsight_is_checked_with_its_own_consolidation() {
    let provider = provider();
    let bench = HINDSIGHT.bench(&provider, true);
    let adapter = HINDSIGHT.adapter(bench.path());
    // what it makes of facts is found beside them: with an id of its own, and the same words once more
    let steps = checked(&bench, &adapter, &[], &["real answers", "ids come back", "repeat"]);
    assert_eq!(steps["lists"]["outcome"], "pass", "{steps:#}");
    let store = &steps["store"];
    assert!(store["ms"].as_u64().is_some_and(|ms| ms < 45_000), "its statistics would be a minute old: {store}");
}

#[test]
fn hindsight_is_killed_while_it_is_filled_and_finds_the_same() {
    // without consolidation a repeat replaces, as its file says
    checked_killed_and_undisturbed(&HINDSIGHT, &["real answers"]);
}

#[test]
fn hindsight_through_rabbitmq_and_postgres_with_a_kill() {
    killed_between_workers(&HINDSIGHT);
}

/// All calls of a server that is told the meter's address go through it, under a key of the run.
#[test]
fn p34_mem0_is_metered_and_killed_while_it_is_filled() {
    checked_killed_and_undisturbed(&MEM0, &[]);
    let provider = provider();
    let bench =
        MEM0.bench(&provider, false).with_env("OPENAI_BASE_URL", provider.base_url()).with_env("OPENAI_API_KEY", KEY);
    let adapter = MEM0.adapter(bench.path());
    let metered = ["--meter", "--meter-variable", "SIM_URL={url}/v1", "--meter-variable", "SIM_KEY={key}"];
    let report = bench.run([&submit(&adapter, "metered")[..], &metered].concat()).expect_code(0).json();
    assert_eq!(report["metered"]["calls"].as_u64(), Some(provider.count("requests")), "{}", report["metered"]);
    let dollars = report["metered"]["usd"].as_f64().expect("dollars");
    assert!(dollars > 0.0 && (dollars - provider.paid()).abs() < 1e-9, "{dollars} {}", provider.paid());
}

#[test]
fn mem0_through_rabbitmq_and_postgres_with_a_kill() {
    killed_between_workers(&MEM0);
}

/// A server that stays, as somebody else starts it: one run fills it, another asks what is there.
#[test]
fn mem0_is_filled_once_and_asked_by_two_runs() {
    let provider = provider();
    let bench = Bench::new();
    let [port] = ports::reserve::<1>().expect("a port");
    let variables: HashMap<&str, String> = MEM0.variables(&provider, false).into_iter().collect();
    let mut command = mortal(&python::python(MEM0.packages));
    command.args([program("mem0_server.py"), port.to_string()]).current_dir(bench.path());
    command.env("MEM0_DATABASE_URL", &variables["SERVER_DB"]).env("MEM0_TELEMETRY", "false");
    command.env("MEM0_DIR", bench.path()).env("HISTORY_DB_PATH", bench.path().join("history.db"));
    command.env("OPENAI_BASE_URL", &variables["SIM_URL"]).env("OPENAI_API_KEY", &variables["SIM_KEY"]);
    let _server = Process::start(command, bench.path(), "mem0");
    wait_until("the server listens", PATIENCE, || TcpStream::connect(("127.0.0.1", port)).is_ok());
    let url = format!("system.url=http://127.0.0.1:{port}");
    let run = |id, more: &[&str]| {
        let args = [submit("mem0", id), vec!["--set", url.as_str()], more.to_vec()].concat();
        let done = bench.run(args).expect_code(0);
        assert_eq!(done.json()["outcomes"]["coverage"], 1.0, "{}", done.stdout);
        done.stderr
    };
    let _ = run("first", &[]);
    let said = run("again", &["--reuse-banks"]);
    assert!(said.contains("2 of 2 banks were filled by run first"), "{said}");
    assert_finds_the_same(&bench.questions("again"), &bench.questions("first"));
}

#[test]
fn cognee_is_killed_while_it_is_filled_and_finds_the_same() {
    checked_killed_and_undisturbed(&COGNEE, &[]);
}

#[test]
fn cognee_through_rabbitmq_and_postgres_with_a_kill() {
    killed_between_workers(&COGNEE);
}

/// Passages are stored one by one, half a second each, and searched as slowly: a small dataset, and no canaries.
#[test]
fn letta_is_checked_and_asked() {
    let provider = provider();
    let bench = LETTA.bench(&provider, false);
    let adapter = LETTA.adapter(bench.path());
    let model = "letta-here.model=openai-proxy/gpt-4o-mini";
    let steps = checked(&bench, &adapter, &["--set", model], &["real answers"]);
    assert_eq!(steps["ids come back"]["outcome"], "pass", "{steps:#}");
    let flags = [
        "submit",
        "--dataset",
        "smoke",
        "--system",
        &adapter,
        "--set",
        model,
        "--run-id",
        "letta",
        "--no-canaries",
        "--latency-probe",
        "off",
        "--json",
    ];
    let report = bench.run(flags).expect_code(0).json();
    assert_eq!(report["outcomes"]["coverage"], 1.0, "{report}");
    assert_eq!(report["system_stats"]["version"], "0.16.8");
    let found = bench.questions("letta");
    assert!(found.iter().all(|question| question["retrieved"].as_array().is_some_and(|hits| !hits.is_empty())));
}
