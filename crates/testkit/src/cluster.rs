//! A cluster on one machine: the real binaries, a database and a virtual host of their own, with as few rights as documented,
//! and the services to break when a test wants to.

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{
    bench::{Bench, Done, binary},
    http,
    postgres::{self, Granted, PgBouncer, Postgres, Roles},
    process::{Process, mortal, tail},
    proxy::Proxy,
    rabbitmq::{self, RabbitMq, Vhost},
};

/// Longest time that a process may take to come up: a second on an idle machine.
const START: Duration = Duration::from_secs(60);
/// Longest time that a command to its end may take.
const PATIENCE: Duration = Duration::from_secs(240);
/// Lines of each log that are shown when a test fails.
const LINES: usize = 60;

/// Which services a test has for itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Setup {
    /// A Postgres that it may stop.
    pub own_postgres: bool,
    /// A RabbitMQ that it may kill.
    pub own_broker: bool,
    /// Fault proxies before both.
    pub proxies: bool,
    /// PgBouncer in transaction mode before Postgres.
    pub pooler: bool,
    /// One user of Postgres for everything but `migrate`, as stores have that named no roles; with a pooler always.
    pub one_role: bool,
}

/// Services, and the processes started on them. Everything ends with it.
#[derive(Debug)]
pub struct Cluster {
    bench: Bench,
    logs: PathBuf,
    keys: Vec<(String, String)>,
    env: Vec<(String, String)>,
    database: Granted,
    roles: bool,
    vhost: Vhost,
    proxies: Option<Proxies>,
    pooler: Option<PgBouncer>,
    postgres: Option<Postgres>,
    broker: Option<RabbitMq>,
    clients: AtomicU32,
}

#[derive(Debug)]
struct Proxies {
    postgres: Proxy,
    broker: Proxy,
    _runtime: tokio::runtime::Runtime,
}

impl Default for Cluster {
    fn default() -> Self {
        Self::new()
    }
}

impl Cluster {
    /// A migrated cluster on the services that all tests of this process share.
    ///
    /// # Panics
    /// When there are no services; says what to install.
    #[must_use]
    pub fn new() -> Self {
        Self::with(Setup::default())
    }

    /// A migrated cluster.
    ///
    /// # Panics
    /// As [`Cluster::new`].
    #[must_use]
    pub fn with(setup: Setup) -> Self {
        Self::without_schema(setup).migrated()
    }

    /// A migrated cluster on a virtual host of the test's own making.
    ///
    /// # Panics
    /// As [`Cluster::new`].
    #[must_use]
    pub fn on(vhost: Vhost, setup: Setup) -> Self {
        Self::build(setup, Some(vhost)).migrated()
    }

    /// Sets a variable for all processes.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    fn migrated(self) -> Self {
        let _ = self.migrate().expect_code(0);
        self
    }

    /// A cluster whose database is empty and whose virtual host has no queues.
    ///
    /// # Panics
    /// As [`Cluster::new`].
    #[must_use]
    pub fn without_schema(setup: Setup) -> Self {
        Self::build(setup, None)
    }

    fn build(setup: Setup, vhost: Option<Vhost>) -> Self {
        let own = setup.own_postgres || setup.pooler;
        let postgres = own.then(|| Postgres::start().unwrap_or_else(|e| panic!("tests need PostgreSQL: {e:#}")));
        let broker =
            setup.own_broker.then(|| RabbitMq::start().unwrap_or_else(|e| panic!("tests need RabbitMQ: {e:#}")));
        let server = postgres.as_ref().map_or_else(|| postgres::shared().url(), |own| own.url("postgres"));
        let mut database = Granted::make(&server).unwrap_or_else(|e| panic!("no database could be made: {e:#}"));
        let make_vhost = || {
            let made = broker.as_ref().map_or_else(|| rabbitmq::shared().make_vhost(), |own| own.make_vhost("test"));
            made.unwrap_or_else(|e| panic!("no virtual host could be made: {e:#}"))
        };
        let mut vhost = vhost.unwrap_or_else(make_vhost);
        let pooler = postgres.as_ref().filter(|_| setup.pooler).map(|before| {
            let pooler = PgBouncer::start(before).unwrap_or_else(|e| panic!("tests need PgBouncer: {e:#}"));
            // the schema is the owner's business, and goes to the server itself
            database.through(|url| at(url, SocketAddr::from(([127, 0, 0, 1], pooler.port()))));
            pooler
        });
        let proxies = setup.proxies.then(|| {
            let proxies = Proxies::start(place_of(&database.runtime), place_of(&vhost.worker));
            database.through(|url| at(url, proxies.postgres.address()));
            vhost.coordinator = at(&vhost.coordinator, proxies.broker.address());
            vhost.worker = at(&vhost.worker, proxies.broker.address());
            proxies
        });
        let roles = !(setup.one_role || setup.pooler);
        if !roles {
            database.roles = Roles::one(&database.runtime);
        }
        let bench = Bench::new();
        let logs = bench.path().join("logs");
        std::fs::create_dir(&logs).expect("a folder for logs");
        let clients = AtomicU32::new(0);
        Self {
            bench,
            logs,
            keys: Vec::new(),
            env: Vec::new(),
            database,
            roles,
            vhost,
            proxies,
            pooler,
            postgres,
            broker,
            clients,
        }
    }

    /// Gives workers, and nobody else, an OpenAI-compatible provider.
    #[must_use]
    pub fn with_provider(mut self, base_url: &str, key: &str) -> Self {
        self.keys = vec![("OPENAI_BASE_URL".into(), base_url.into()), ("OPENAI_API_KEY".into(), key.into())];
        self
    }

    /// Gives workers, and nobody else, a variable.
    #[must_use]
    pub fn with_key(mut self, name: &str, value: &str) -> Self {
        self.keys.push((name.into(), value.into()));
        self
    }

    /// `bench-coord migrate`, as the owner of the schema.
    ///
    /// # Panics
    /// When it takes too long.
    #[must_use]
    pub fn migrate(&self) -> Done {
        let mut command = self.command("bench-coord", &self.database.owner, &self.vhost.coordinator);
        command.arg("migrate");
        if self.roles {
            command.args(["--roles", "bench"]);
        }
        self.spawn(command, "migrate").wait(PATIENCE)
    }

    /// URLs of the database.
    #[must_use]
    pub fn database(&self) -> &Granted {
        &self.database
    }

    /// URLs of the virtual host.
    #[must_use]
    pub fn vhost(&self) -> &Vhost {
        &self.vhost
    }

    /// The Postgres of this test alone.
    ///
    /// # Panics
    /// When the test has none.
    #[must_use]
    pub fn postgres(&self) -> &Postgres {
        self.postgres.as_ref().expect("Setup::own_postgres was asked for")
    }

    /// The RabbitMQ of this test alone.
    ///
    /// # Panics
    /// When the test has none.
    #[must_use]
    pub fn broker(&mut self) -> &mut RabbitMq {
        self.broker.as_mut().expect("Setup::own_broker was asked for")
    }

    /// The proxy before Postgres.
    ///
    /// # Panics
    /// When the test has none.
    #[must_use]
    pub fn postgres_proxy(&self) -> &Proxy {
        &self.proxies.as_ref().expect("Setup::proxies was asked for").postgres
    }

    /// The proxy before RabbitMQ.
    ///
    /// # Panics
    /// When the test has none.
    #[must_use]
    pub fn broker_proxy(&self) -> &Proxy {
        &self.proxies.as_ref().expect("Setup::proxies was asked for").broker
    }

    /// Whether a pooler stands before Postgres.
    #[must_use]
    pub const fn is_pooled(&self) -> bool {
        self.pooler.is_some()
    }

    /// Makes the virtual host again on a broker that has forgotten everything, as its operator would.
    ///
    /// # Panics
    /// When that fails.
    pub fn make_vhost_again(&mut self) {
        let _ = self.broker().make_vhost("test").expect("a virtual host");
    }

    /// Runs SQL as the superuser, past all proxies, and returns what it prints.
    ///
    /// # Panics
    /// When the server refuses it.
    pub fn sql(&self, sql: &str) -> String {
        postgres::run_sql(&self.database.admin, sql).unwrap_or_else(|e| panic!("{sql}: {e:#}"))
    }

    /// The same in a thread of its own, for a statement that ends when somebody ends its connection.
    pub fn sql_beside(&self, sql: &'static str) -> JoinHandle<anyhow::Result<String>> {
        let url = self.database.admin.clone();
        std::thread::spawn(move || postgres::run_sql(&url, sql))
    }

    /// A binary with the store of a URL and the queue of another. The environment holds only what is named here.
    #[must_use]
    pub fn command(&self, program: &str, store: &str, queue: &str) -> Command {
        let mut command = mortal(&binary(program));
        command
            .current_dir(self.bench.path())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("USER", "tester")
            .env("NO_COLOR", "1")
            .env("BENCH_STORE_URL", store)
            .env("BENCH_QUEUE_URL", queue)
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts a command with its logs among those of the cluster.
    #[must_use]
    pub fn spawn(&self, command: Command, name: &str) -> Process {
        Process::start(command, &self.logs, name)
    }

    /// Starts `bench-coord serve` and waits until it listens.
    ///
    /// # Panics
    /// When it does not come up.
    #[must_use]
    pub fn coordinator(&self, name: &str) -> Process {
        let mut command = self.command("bench-coord", &self.database.roles.coordinate, &self.vhost.coordinator);
        command.args(["serve", "-v", "--listen", "127.0.0.1:0", "--name", name]);
        self.spawn(command, name)
    }

    /// Starts `bench-worker` with these flags.
    #[must_use]
    pub fn worker(&self, name: &str, flags: &[&str]) -> Process {
        self.worker_with(name, flags, &[])
    }

    /// The same with variables of its own.
    #[must_use]
    pub fn worker_with(&self, name: &str, flags: &[&str], env: &[(&str, &str)]) -> Process {
        let mut command = self.command("bench-worker", &self.database.roles.work, &self.vhost.worker);
        command.args(["-v", "--name", name]).args(flags);
        // rehearsals of `faulty` keep their banks there; of all else the defaults hold
        command.env("BENCH_ALLOW_FILES", self.bench.path().join("memory"));
        command.envs(self.keys.iter().map(|(name, value)| (name, value)));
        command.envs(env.iter().copied());
        self.spawn(command, name)
    }

    /// Starts `bench-coord meter` at an address, with the keys of workers.
    #[must_use]
    pub fn meter(&self, name: &str, listen: &str) -> Process {
        let mut command = self.command("bench-coord", &self.database.roles.work, &self.vhost.worker);
        command.args(["meter", "--listen", listen]);
        command.envs(self.keys.iter().map(|(name, value)| (name, value)));
        self.spawn(command, name)
    }

    /// Starts `bench-coord` with these arguments, as a person of the cluster would.
    #[must_use]
    pub fn client(&self, args: &[&str]) -> Process {
        let mut command = self.command("bench-coord", self.store_for(args), &self.vhost.worker);
        command.args(args);
        let verb = args.first().copied().unwrap_or("client");
        self.spawn(command, &format!("{verb}-{}", self.clients.fetch_add(1, Ordering::Relaxed)))
    }

    /// The store under the weakest role that is enough for a verb, as docs/OPERATIONS.md lists them.
    fn store_for(&self, args: &[&str]) -> &str {
        let roles = &self.database.roles;
        let has = |flag: &str| args.contains(&flag);
        match args {
            ["retry" | "rejudge" | "rescore" | "judge-audit" | "import" | "gc" | "restore", ..] => &roles.coordinate,
            ["banks", "remove", ..] => &roles.coordinate,
            ["archive", "fetch", ..] if has("--restore") => &roles.coordinate,
            ["submit", ..] if has("--fork") => &roles.coordinate,
            ["resume", ..] if has("--release-uncertain") => &roles.coordinate,
            ["submit" | "matrix" | "resume" | "pause" | "cancel" | "rename" | "tag", ..] => &roles.submit,
            ["archive", "push", ..] => &roles.submit,
            _ => &roles.read,
        }
    }

    /// Runs `bench-coord` to its end.
    ///
    /// # Panics
    /// When it takes too long.
    #[must_use]
    pub fn run(&self, args: &[&str]) -> Done {
        self.client(args).wait(PATIENCE)
    }

    /// `status RUN --json`.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    pub fn status(&self, run: &str) -> Value {
        self.run(&["status", run, "--json"]).expect_code(0).json()
    }

    /// Waits until `status RUN --json` is as wanted, and returns it.
    ///
    /// # Panics
    /// When it takes longer than `patience`.
    #[must_use]
    pub fn wait_for_status(&self, run: &str, patience: Duration, wanted: impl Fn(&Value) -> bool) -> Value {
        let began = Instant::now();
        loop {
            let status = self.status(run);
            if wanted(&status) {
                return status;
            }
            assert!(began.elapsed() < patience, "not within {patience:?}: {status:#}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// A run's `report.json`, as the client wrote it.
    #[must_use]
    pub fn report(&self, run: &str) -> Value {
        self.bench.report(run)
    }

    /// A run's `questions.jsonl`, as the client wrote it.
    #[must_use]
    pub fn questions(&self, run: &str) -> Vec<Value> {
        self.bench.questions(run)
    }

    /// The working folder.
    #[must_use]
    pub fn bench(&self) -> &Bench {
        &self.bench
    }

    /// Everything that any process has said so far, by the names of the logs.
    #[must_use]
    pub fn logs(&self) -> Vec<(String, String)> {
        let mut logs: Vec<(String, String)> = std::fs::read_dir(&self.logs)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| {
                let text = std::fs::read(entry.path()).unwrap_or_default();
                (entry.file_name().to_string_lossy().into_owned(), String::from_utf8_lossy(&text).into_owned())
            })
            .collect();
        logs.sort();
        logs
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (name, text) in self.logs().iter().filter(|(_, text)| !text.is_empty()) {
                let lines = if name.ends_with(".err") { LINES } else { LINES / 6 };
                eprintln!("---- {name}\n{}", tail(text, lines));
            }
        }
    }
}

impl Proxies {
    fn start(postgres: SocketAddr, broker: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime for proxies");
        let (postgres, broker) = runtime.block_on(async {
            let postgres = Proxy::start(postgres).await.expect("a proxy before Postgres");
            (postgres, Proxy::start(broker).await.expect("a proxy before RabbitMQ"))
        });
        Self { postgres, broker, _runtime: runtime }
    }
}

/// Where a started process listens, by what it has said.
///
/// # Panics
/// When it does not come up.
#[must_use]
pub fn health_of(process: &mut Process) -> String {
    let line = process.wait_for_line("health at http://", START);
    let place = line.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    place.expect("an address follows").to_owned()
}

/// Waits until a process says that it can work.
///
/// # Panics
/// When it takes too long.
pub fn wait_until_ready(process: &mut Process) {
    let place = health_of(process);
    let began = Instant::now();
    loop {
        let reply = http::get(&place, "/readyz");
        if reply.as_ref().is_ok_and(|reply| reply.status == 200) {
            return;
        }
        assert!(process.runs() && began.elapsed() < START, "{} is not ready: {reply:?}", process.name());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Host and port of a URL with both.
fn place_of(url: &str) -> SocketAddr {
    let authority = url.split('/').nth(2).unwrap_or_default();
    let place = authority.rsplit('@').next().unwrap_or_default();
    std::net::ToSocketAddrs::to_socket_addrs(place)
        .ok()
        .and_then(|mut addresses| addresses.next())
        .unwrap_or_else(|| panic!("'{place}' is no host with a port: a proxy cannot stand before it"))
}

/// The URL with another host and port.
#[must_use]
pub fn at(url: &str, address: SocketAddr) -> String {
    let mut parts: Vec<String> = url.splitn(4, '/').map(str::to_owned).collect();
    if let Some(authority) = parts.get_mut(2) {
        *authority = match authority.rsplit_once('@') {
            Some((user, _)) => format!("{user}@{address}"),
            None => address.to_string(),
        };
    }
    parts.join("/")
}
