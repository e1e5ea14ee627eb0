//! Bad input: one clear line, the right exit code, for everybody who connects; and no password anywhere.

use std::time::Duration;

use bench_testkit::{
    bench::{Bench, Done},
    cluster::{Cluster, Setup},
    postgres, rabbitmq,
};

/// Everybody who connects to both services.
const PEOPLE: [(&str, &[&str]); 3] = [
    ("bench-coord", &["submit", "--dataset", "locomo-sim", "--preset", "quick"]),
    ("bench-coord", &["serve", "--listen", "127.0.0.1:0"]),
    ("bench-worker", &[]),
];

/// Starts each of them with these URLs: they must end at once with this code, and say this.
fn refused(cluster: &Cluster, store: &str, queue: &str, code: i32, words: &[&str]) {
    for (program, args) in PEOPLE {
        let mut command = cluster.command(program, store, queue);
        command.args(args).env("BENCH_HTTP_TOKEN", "planted-token");
        let done = cluster.spawn(command, &format!("{program}-{}", unique())).wait(Duration::from_secs(40));
        check(&done, code, words, &format!("{program} {args:?}"));
    }
}

fn check(done: &Done, code: i32, words: &[&str], who: &str) {
    assert_eq!(done.code, code, "{who}: {}", done.stderr);
    assert_eq!(done.stdout, "", "{who}");
    let errors: Vec<&str> = done.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{who} says one thing: {}", done.stderr);
    for word in words {
        assert!(errors[0].contains(word), "{who}: '{word}' is missing in {}", errors[0]);
    }
    for secret in [postgres::PASSWORD, rabbitmq::PASSWORD, "wrong-password", "planted-token", "panicked"] {
        assert!(!done.stderr.contains(secret), "{who} shows '{secret}': {}", done.stderr);
    }
}

fn unique() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    COUNT.fetch_add(1, Ordering::Relaxed)
}

fn nobody_listens() -> String {
    let [port] = bench_testkit::ports::reserve().expect("a port");
    format!("127.0.0.1:{port}")
}

#[test]
fn brokers_that_cannot_be_used() {
    let cluster = Cluster::new();
    let (store, queue) = (cluster.database().runtime.clone(), cluster.vhost().worker.clone());
    let nobody = nobody_listens();
    let place = queue.split('@').nth(1).expect("a place").to_owned();
    let (host, _) = place.split_once('/').expect("a virtual host");
    let user = format!("bench-worker:{}", rabbitmq::PASSWORD);
    for (url, code, words) in [
        (format!("amqp://bench-worker:wrong-password@{place}"), 2, &["user and password"][..]),
        (format!("amqp://{user}@{host}/no-such-vhost"), 2, &["virtual host", "no-such-vhost"]),
        (format!("amqp://{user}@{nobody}/x"), 4, &["127.0.0.1", "Connection refused"]),
        (format!("amqp://{user}@:port/x"), 2, &["cannot read the queue URL"]),
        (format!("kafka://{user}@{place}"), 2, &["kafka"]),
    ] {
        let words: Vec<&str> = words.to_vec();
        refused(&cluster, &store, &url, code, &words);
    }
}

#[test]
fn databases_that_cannot_be_used() {
    let cluster = Cluster::with(Setup { own_postgres: true, ..Setup::default() });
    cluster.postgres().ask_password_of("bench_worker").expect("the server asks");
    let queue = cluster.vhost().worker.clone();
    let place = cluster.database().runtime.split('@').nth(1).expect("a place").to_owned();
    let (host, _) = place.split_once('/').expect("a database");
    let user = format!("bench_worker:{}", postgres::PASSWORD);
    let nobody = nobody_listens();
    for (url, code, words) in [
        (format!("postgres://bench_worker:wrong-password@{place}"), 2, &["check the user and the password"][..]),
        (format!("postgres://{user}@{host}/nowhere"), 2, &["createdb nowhere"]),
        (format!("postgres://{user}@{nobody}/x"), 4, &["no server listens at"]),
        (format!("postgres://{user}@127.0.0.1:port/x"), 2, &["cannot be read"]),
        (format!("mysql://{user}@{place}"), 2, &["mysql"]),
    ] {
        let words: Vec<&str> = words.to_vec();
        refused(&cluster, &url, &queue, code, &words);
    }
}

#[test]
fn schemas_that_are_too_old_or_too_new() {
    let cluster = Cluster::without_schema(Setup::default());
    let (store, queue) = (cluster.database().runtime.clone(), cluster.vhost().worker.clone());
    refused(&cluster, &store, &queue, 4, &["bench-coord migrate"]);
    let _ = cluster.migrate().expect_code(0);
    let _ = cluster.migrate().expect_code(0);
    let _ = cluster.sql("UPDATE bench_schema SET version = 99, min_writer = 99, min_reader = 99");
    refused(&cluster, &store, &queue, 4, &["99", "newer"]);
}

#[test]
fn a_worker_may_not_migrate_and_waits_for_queues_that_are_not_declared() {
    let cluster = Cluster::without_schema(Setup { one_role: true, ..Setup::default() });
    let migrate = |store: &str, queue: &str| {
        let mut command = cluster.command("bench-coord", store, queue);
        command.arg("migrate");
        cluster.spawn(command, &format!("migrate-{}", unique())).wait(Duration::from_secs(40))
    };
    let database = cluster.database();
    let refused = migrate(&database.runtime, &cluster.vhost().coordinator);
    check(&refused, 2, &["permission denied", "README.md"], "migrate as a worker's role");
    let refused = migrate(&database.owner, &cluster.vhost().worker).expect_code(2);
    assert!(refused.stderr.contains("configure permission"), "{}", refused.stderr);
    // the store is migrated now, the queues are not declared
    let mut worker = cluster.worker("early", &[]);
    let _ = worker.wait_for_line("is not declared", Duration::from_secs(20));
    let place = bench_testkit::cluster::health_of(&mut worker);
    // the line is written a moment before the page says it
    bench_testkit::process::wait_until("the page says what is missing", Duration::from_secs(20), || {
        let ready = bench_testkit::http::get(&place, "/readyz").expect("answers");
        assert_eq!(ready.status, 503, "{}", ready.body);
        ready.body.contains("bench-coord migrate")
    });
    let _ = cluster.migrate().expect_code(0);
    bench_testkit::cluster::wait_until_ready(&mut worker);
}

#[test]
fn listening_for_others_needs_a_token() {
    let cluster = Cluster::new();
    let start = |program: &str, args: &[&str], queue: &str, token: Option<&str>| {
        let mut command = cluster.command(program, &cluster.database().runtime, queue);
        command.args(args).args(["--listen", "0.0.0.0:0"]);
        command.envs(token.map(|token| ("BENCH_HTTP_TOKEN", token)));
        cluster.spawn(command, &format!("{program}-{}", unique()))
    };
    let vhost = cluster.vhost();
    for (program, args, queue) in
        [("bench-coord", &["serve"][..], &vhost.coordinator), ("bench-worker", &[], &vhost.worker)]
    {
        let refused = start(program, args, queue, None).wait(Duration::from_secs(40));
        check(&refused, 2, &["0.0.0.0", "BENCH_HTTP_TOKEN", "127.0.0.1"], program);
        let mut open = start(program, args, queue, Some("planted-token"));
        let place = bench_testkit::cluster::health_of(&mut open).replace("0.0.0.0", "127.0.0.1");
        for path in ["/healthz", "/readyz", "/api/scale/default/question", "/nothing"] {
            let reply = bench_testkit::http::get(&place, path).expect("answers");
            assert_eq!(reply.status, 401, "{program} {path} without the token: {}", reply.body);
        }
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let cluster = Cluster::new();
    let (store, queue) = (&cluster.database().runtime, &cluster.vhost().admin);
    for (store, queue) in [(store.as_str(), "memory:"), ("sqlite:here.db", queue.as_str())] {
        for (program, args) in PEOPLE {
            let mut command = cluster.command(program, store, queue);
            command.args(args);
            let done = cluster.spawn(command, &format!("{program}-{}", unique())).wait(Duration::from_secs(40));
            assert_eq!(done.code, 2, "{program} {args:?}: {}", done.stderr);
            let way_out = ["--queue memory:", "--queue amqp://"].iter().any(|words| done.stderr.contains(words));
            assert!(way_out, "{program}: {}", done.stderr);
            assert!(!done.stderr.contains("planted"), "{}", done.stderr);
        }
    }
}

/// Nobody is there: what is said comes before anything is sent.
#[test]
fn plain_transport_to_elsewhere_is_warned_of() {
    let bench = Bench::new().with_env("BENCH_STORE_URL", "postgres://u:planted@db.example.invalid/b?sslmode=prefer");
    let bench = bench.with_env("BENCH_QUEUE_URL", "amqp://u:planted@mq.example.invalid/v");
    let bench =
        bench.with_env("OPENAI_BASE_URL", "http://api.example.invalid/v1").with_env("OPENAI_API_KEY", "planted");
    let bench = bench.with_env("BENCH_ARCHIVE_URL", "s3://bucket/results");
    let bench = bench.with_env("AWS_ENDPOINT_URL", "http://objects.example.invalid:9000");
    let bench = bench.with_env("BENCH_METER_PUBLIC_URL", "http://meter.example.invalid:7070");
    let adapter = "name: mine\nurl: http://mem.example.invalid/v1\nallow: [plain_text_key]\nauth: {env: OPENAI_API_KEY}\n\
                   retain: {request: POST /add, body: {text: '{text}'}}\n\
                   recall: {request: POST /search, body: {query: '{query}'}, hits: [{list: results, text: memory}]}\n";
    std::fs::write(bench.path().join("mine.yaml"), adapter).expect("is written");
    let doctor = ["doctor", "--set", "run.system=./mine.yaml"];
    let done = bench.run(doctor);
    for what in [
        "store: what goes to db.example.invalid",
        "queue: what goes to mq.example.invalid",
        "account openai: what goes to api",
        "archive: what goes to objects.example.invalid",
        "system mine: what goes to mem.example.invalid",
        "meter: what goes to meter.example.invalid",
    ] {
        assert!(done.stdout.contains(&format!("WARNING transport: {what}")), "{}", done.stdout);
    }
    assert!(done.stderr.contains("db.example.invalid is not encrypted"), "{}", done.stderr);
    assert!(!done.stderr.contains("planted") && !done.stdout.contains("planted"), "{}", done.stderr);
    let bench = bench.with_env(
        "BENCH_ALLOW_PLAINTEXT",
        "db.example.invalid, mq.example.invalid,api.example.invalid,objects.example.invalid,mem.example.invalid,\
         meter.example.invalid",
    );
    let allowed = bench.run(doctor);
    assert!(!allowed.stdout.contains("WARNING") && !allowed.stderr.contains("not encrypted"), "{}", allowed.stderr);
    let bench = Bench::new().with_env("BENCH_PGVECTOR_URL", "postgres://u:planted@db.example.invalid/x");
    let more = ["--system", "pgvector", "--set", "vector.model=hash"];
    let away = bench.run(bench_testkit::bench::submit_sim(&more));
    let warned = "system pgvector: what goes to db.example.invalid is not encrypted: write ?sslmode=verify-full";
    assert!(away.stderr.contains(warned) && !away.stderr.contains("planted"), "{}", away.stderr);
}
