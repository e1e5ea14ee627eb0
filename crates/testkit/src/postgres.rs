//! Private PostgreSQL clusters for tests: own port, folder and user; never the machine's own databases.
//!
//! The Debian package is enough: `apt-get install -y --no-install-recommends postgresql`. With `BENCH_TEST_POSTGRES_URL` (a
//! superuser's URL) [`shared`] uses that server instead and only makes databases there; they stay.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use tempfile::TempDir;

use crate::{
    packages::{install, is_root, last_lines, succeeded},
    ports,
    python::postgres_with_vector,
};

const EXTERNAL: &str = "BENCH_TEST_POSTGRES_URL";
/// Longest wait for a server to listen; it takes half a second on an idle machine.
const START: Duration = Duration::from_secs(60);
/// A port that was free a moment ago may be taken: other test binaries look for one too.
const TRIES: usize = 3;

/// The server that all tests of this binary share; each has databases of its own.
///
/// # Panics
/// When there is no PostgreSQL and none can be installed; says what to do.
#[must_use]
pub fn shared() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| match std::env::var(EXTERNAL) {
        Ok(url) => Server::External(url),
        Err(_) => Server::Own(Postgres::start().unwrap_or_else(|e| panic!("tests need PostgreSQL: {e:#}"))),
    })
}

/// The same with the extension pgvector.
///
/// # Panics
/// When it cannot be installed, or does not come up.
#[must_use]
pub fn with_vector() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    let programs = postgres_with_vector;
    SERVER.get_or_init(|| {
        Postgres::start_of(Some(programs()), QUICK).unwrap_or_else(|e| panic!("tests need pgvector: {e:#}"))
    })
}

/// A server on which databases can be made.
#[derive(Debug)]
pub enum Server {
    /// A cluster of this process.
    Own(Postgres),
    /// Somebody else's, by its URL.
    External(String),
}

impl Server {
    /// Makes an empty database and returns its URL for a superuser.
    ///
    /// # Panics
    /// When the server is down.
    #[must_use]
    pub fn create_database(&self) -> String {
        let made = match self {
            Self::Own(cluster) => cluster.create_database(),
            Self::External(url) => create_database(url),
        };
        made.unwrap_or_else(|e| panic!("no database could be made: {e:#}"))
    }

    /// URL of the database `postgres` for a superuser.
    #[must_use]
    pub fn url(&self) -> String {
        match self {
            Self::Own(cluster) => cluster.url("postgres"),
            Self::External(url) => url.clone(),
        }
    }
}

/// A database with the roles that `migrations/postgres/README.md` names, and nothing beyond its grants.
#[derive(Debug, Clone)]
pub struct Granted {
    /// For the superuser: what tests look at and damage.
    pub admin: String,
    /// For the role that owns the schema: `migrate`.
    pub owner: String,
    /// For the role as which everything else can run.
    pub runtime: String,
    /// For the four roles of `migrate --roles bench`, which have no right before it.
    pub roles: Roles,
}

/// URLs of a database, by what is done.
#[derive(Debug, Clone)]
pub struct Roles {
    /// To look.
    pub read: String,
    /// To plan.
    pub submit: String,
    /// URL of the role that workers have.
    pub work: String,
    /// To hand out and to look after.
    pub coordinate: String,
}

impl Roles {
    fn from_url(url: &str) -> Self {
        let [read, submit, work, coordinate] = PARTS.map(|part| as_role(url, part));
        Self { read, submit, work, coordinate }
    }

    /// All of them as the role that may do everything: what a store without roles has.
    #[must_use]
    pub fn one(url: &str) -> Self {
        let [read, submit, work, coordinate] = [(); 4].map(|()| url.to_owned());
        Self { read, submit, work, coordinate }
    }
}

/// Names of the four roles, with the prefix that tests give to `migrate --roles`.
const PARTS: [&str; 4] = ["bench_read", "bench_submit", "bench_work", "bench_coordinate"];

/// Password of both roles; no output may ever hold it.
pub const PASSWORD: &str = "planted-database-password";

impl Granted {
    /// Makes the roles, where they are missing, and a database with their grants.
    ///
    /// # Errors
    /// When the server is down or its user is no superuser.
    pub fn make(server: &str) -> anyhow::Result<Self> {
        // roles belong to the whole server: another test may be making them at this moment
        let role = |name: &str| {
            format!(
                "DO $$ BEGIN CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'; \
                 EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;"
            )
        };
        psql(server, &[OWNER, RUNTIME].into_iter().chain(PARTS).map(role).collect::<String>())?;
        let admin = create_database(server)?;
        psql(
            &admin,
            &format!(
                "ALTER DATABASE {database} OWNER TO {OWNER}; \
                 REVOKE ALL ON SCHEMA public FROM PUBLIC; \
                 GRANT CREATE, USAGE ON SCHEMA public TO {OWNER}; \
                 GRANT USAGE ON SCHEMA public TO {RUNTIME}; \
                 ALTER DEFAULT PRIVILEGES FOR ROLE {OWNER} IN SCHEMA public \
                 GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {RUNTIME};",
                database = database_of(&admin)
            ),
        )?;
        let (owner, runtime, roles) = (as_role(&admin, OWNER), as_role(&admin, RUNTIME), Roles::from_url(&admin));
        Ok(Self { admin, owner, runtime, roles })
    }
}

const OWNER: &str = "bench_owner";
const RUNTIME: &str = "bench_worker";

impl Granted {
    /// Changes the URLs of everything but the owner's and the superuser's: a proxy comes in between.
    pub fn through(&mut self, way: impl Fn(&str) -> String) {
        let Roles { read, submit, work, coordinate } = &mut self.roles;
        for url in [&mut self.runtime, read, submit, work, coordinate] {
            *url = way(url);
        }
    }
}

/// Runs SQL behind a URL and returns what it prints, without decoration.
///
/// # Errors
/// When the server is down or refuses it; with what it said.
pub fn run_sql(url: &str, sql: &str) -> anyhow::Result<String> {
    psql(url, sql)
}

/// Backs a database up into a file, as its operator would: `pg_dump -Fc`.
///
/// # Errors
/// When the server is down or the role may not read everything.
pub fn dump(url: &str, file: &Path) -> anyhow::Result<()> {
    let output =
        Command::new(tool("pg_dump")?).args(["-Fc", "-d", url, "-f"]).arg(file).stdin(Stdio::null()).output()?;
    succeeded("pg_dump", &output)
}

/// Brings a backup back into an empty database: `pg_restore --no-owner`.
///
/// # Errors
/// When anything of it cannot be made there.
pub fn restore(url: &str, file: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(tool("pg_restore")?);
    command.args(["--no-owner", "--exit-on-error", "-d", url]).arg(file);
    succeeded("pg_restore", &command.stdin(Stdio::null()).output()?)
}

/// The name of the database of a URL.
#[must_use]
pub fn database_of(url: &str) -> &str {
    let path = url.splitn(4, '/').nth(3).unwrap_or_default();
    path.split('?').next().unwrap_or_default()
}

/// The URL with another user.
fn as_role(url: &str, role: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{role}:{PASSWORD}@{host}/{path}")
}

/// A cluster of its own. It is stopped, and its data deleted, when this is dropped or the process ends.
#[derive(Debug)]
pub struct Postgres {
    folder: PathBuf,
    port: u16,
    guardian: Mutex<Child>,
    /// Where its programs are, unless Debian brings them.
    programs: Option<PathBuf>,
}

/// Lines of `postgresql.conf` for servers whose data nobody needs.
const QUICK: &str = "fsync = off\nfull_page_writes = off\nshared_buffers = 64MB\n";

impl Postgres {
    /// Makes a cluster and waits until it listens. The superuser is `postgres`, without a password.
    ///
    /// # Errors
    /// When PostgreSQL is not installed and cannot be, or does not come up; says what to install, or ends with the log.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with(QUICK)
    }

    /// The same with lines of `postgresql.conf`: an empty text keeps what people run, durable commits above all.
    ///
    /// # Errors
    /// Like [`Self::start`].
    pub fn start_with(lines: &str) -> anyhow::Result<Self> {
        Self::start_of(None, lines)
    }

    fn start_of(programs: Option<PathBuf>, lines: &str) -> anyhow::Result<Self> {
        let folder = private_folder("bench-postgres-")?;
        let pg_ctl = programs.as_ref().map_or_else(|| tool("pg_ctl"), |folder| Ok(folder.join("pg_ctl")))?;
        let guardian = guardian(&folder, &pg_ctl, ":", "\"$1\" -D \"$0/data\" -m immediate -w stop")?;
        let mut cluster = Self { folder, port: 0, guardian: Mutex::new(guardian), programs };
        let data = cluster.data();
        let made = cluster
            .program("initdb")?
            .args(["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync", "-D"])
            .arg(&data)
            .output()?;
        succeeded("initdb", &made)?;
        let defaults = fs::read_to_string(data.join("postgresql.conf"))?;
        for attempt in 1.. {
            [cluster.port] = ports::reserve()?;
            let settings = format!(
                "{defaults}\nlisten_addresses = '127.0.0.1'\nport = {}\nunix_socket_directories = '{}'\nmax_connections = 300\n\
                 {lines}",
                cluster.port,
                cluster.folder.display()
            );
            fs::write(data.join("postgresql.conf"), settings)?;
            match cluster.start_again() {
                Err(_) if attempt < TRIES => {}
                started => {
                    started?;
                    break;
                }
            }
        }
        Ok(cluster)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Process id of the server's first process, the parent of all others.
    ///
    /// # Errors
    /// When the server is down.
    pub fn pid(&self) -> anyhow::Result<u32> {
        let file = self.data().join("postmaster.pid");
        let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        Ok(text.lines().next().unwrap_or_default().trim().parse()?)
    }

    /// The folder of the local socket.
    #[must_use]
    pub fn socket_folder(&self) -> &Path {
        &self.folder
    }

    /// The data folder, for tests that change the server's configuration.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// URL of a database for the superuser.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Makes an empty database and returns its URL.
    ///
    /// # Errors
    /// When the server is down.
    pub fn create_database(&self) -> anyhow::Result<String> {
        create_database(&self.url("postgres"))
    }

    /// Runs SQL in a database and returns what it prints, without decoration.
    ///
    /// # Errors
    /// When the server is down or refuses it; with what it said.
    pub fn sql(&self, database: &str, sql: &str) -> anyhow::Result<String> {
        psql(&self.url(database), sql)
    }

    /// Runs a script of `psql` (with its commands, such as `\\connect`) as the superuser.
    ///
    /// # Errors
    /// When the server is down or refuses a statement; with what it said.
    pub fn script(&self, script: &str) -> anyhow::Result<()> {
        let file = self.folder.join("script.sql");
        fs::write(&file, script)?;
        let url = self.url("postgres");
        let output = Command::new(tool("psql")?)
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-f"])
            .arg(file)
            .arg(url)
            .stdin(Stdio::null())
            .output()?;
        succeeded("psql", &output)
    }

    /// Makes the server ask a role for its password.
    ///
    /// # Errors
    /// When the server does not come up with it.
    pub fn ask_password_of(&self, role: &str) -> anyhow::Result<()> {
        let file = self.data().join("pg_hba.conf");
        let others = fs::read_to_string(&file)?;
        fs::write(&file, format!("host all {role} 127.0.0.1/32 scram-sha-256\n{others}"))?;
        self.restart()
    }

    /// Makes the server speak TLS as `localhost`; returns the certificate that clients must trust.
    ///
    /// # Errors
    /// When there is no `openssl`, or the server does not come up with it.
    pub fn speak_tls(&self) -> anyhow::Result<PathBuf> {
        if find_in_path("openssl").is_none() {
            install("openssl")?;
        }
        let (wish, key, certificate) =
            (self.folder.join("wish.cnf"), self.folder.join("key.pem"), self.folder.join("certificate.pem"));
        fs::write(
            &wish,
            "[req]\nprompt = no\ndistinguished_name = name\nx509_extensions = more\n[name]\nCN = localhost\n\
             [more]\nsubjectAltName = DNS:localhost\nbasicConstraints = CA:FALSE\n",
        )?;
        let made = as_user(Path::new("openssl"))?
            .args("req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1".split(' '))
            .arg("-config")
            .arg(&wish)
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()?;
        succeeded("openssl", &made)?;
        let file = self.data().join("postgresql.conf");
        let others = fs::read_to_string(&file)?;
        let (key, public) = (key.display(), certificate.display());
        fs::write(&file, format!("{others}ssl = on\nssl_key_file = '{key}'\nssl_cert_file = '{public}'\n"))?;
        self.restart()?;
        Ok(certificate)
    }

    /// Stops the server as a crash would: clients are cut off in the middle, the start replays the log.
    ///
    /// # Errors
    /// When `pg_ctl` fails.
    pub fn stop(&self) -> anyhow::Result<()> {
        self.control(&["-m", "immediate", "-w", "stop"])
    }

    /// Starts the server with its data on its port, and waits until it listens.
    ///
    /// # Errors
    /// When it does not come up; ends with its log.
    pub fn start_again(&self) -> anyhow::Result<()> {
        let timeout = START.as_secs().to_string();
        let log = self.folder.join("log");
        let started = self.control(&["-l", &log.display().to_string(), "-w", "-t", &timeout, "start"]);
        started.with_context(|| format!("its log ends with: {}", last_lines(&log)))
    }

    /// [`Self::stop`] and [`Self::start_again`].
    ///
    /// # Errors
    /// Like those.
    pub fn restart(&self) -> anyhow::Result<()> {
        self.stop()?;
        self.start_again()
    }

    /// Copies the server as it is at this moment, while it goes on: what a replica that gets no further would have.
    ///
    /// # Errors
    /// When `pg_basebackup` fails.
    pub fn copy(&self) -> anyhow::Result<Copied> {
        let copy = self.folder.join("copy");
        let output = tool_as_user("pg_basebackup")?
            .args(["-h", "127.0.0.1", "-U", "postgres", "-c", "fast", "-X", "stream", "--no-sync", "-p"])
            .arg(self.port.to_string())
            .arg("-D")
            .arg(&copy)
            .stdin(Stdio::null())
            .output()?;
        succeeded("pg_basebackup", &output)?;
        Ok(Copied(copy))
    }

    /// A failover that loses everything since the copy was made: the server dies, and the copy takes its place and its port.
    ///
    /// # Errors
    /// When the copy does not come up.
    pub fn fail_over(&self, Copied(copy): Copied) -> anyhow::Result<()> {
        self.stop()?;
        fs::remove_dir_all(self.data())?;
        fs::rename(copy, self.data())?;
        self.start_again()
    }

    /// A program of its release, run as its user.
    fn program(&self, name: &str) -> anyhow::Result<Command> {
        self.programs.as_ref().map_or_else(|| tool_as_user(name), |folder| as_user(&folder.join(name)))
    }

    fn control(&self, arguments: &[&str]) -> anyhow::Result<()> {
        // the server inherits these handles: with pipes, waiting for their end would be waiting for the server
        let said = fs::File::create(self.folder.join("pg_ctl"))?;
        let status = self
            .program("pg_ctl")?
            .arg("-D")
            .arg(self.data())
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(said.try_clone()?)
            .stderr(said)
            .status()?;
        ensure!(status.success(), "pg_ctl {}: {}", arguments.join(" "), last_lines(&self.folder.join("pg_ctl")));
        Ok(())
    }
}

/// A server's data as they were when it was copied.
#[derive(Debug)]
pub struct Copied(PathBuf);

impl Drop for Postgres {
    fn drop(&mut self) {
        let mut guardian = self.guardian.lock().unwrap_or_else(PoisonError::into_inner);
        drop(guardian.stdin.take());
        let _ = guardian.wait();
    }
}

/// PgBouncer in transaction mode before a cluster: any database of it, two server connections each.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    guardian: Child,
}

impl PgBouncer {
    /// Starts it and waits until it listens.
    ///
    /// # Errors
    /// When it is not installed and cannot be, or does not come up; ends with its log.
    pub fn start(before: &Postgres) -> anyhow::Result<Self> {
        let program = Path::new("/usr/sbin/pgbouncer");
        if !program.exists() {
            install("pgbouncer")?;
        }
        let folder = private_folder("bench-pgbouncer-")?;
        let [port] = ports::reserve()?;
        fs::write(folder.join("users"), format!("\"postgres\" \"\"\n\"{OWNER}\" \"\"\n\"{RUNTIME}\" \"\"\n"))?;
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
             auth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 1000\n",
            before.port(),
            folder.join("users").display(),
        );
        fs::write(folder.join("settings.ini"), settings)?;
        let run = "\"$1\" \"$0/settings.ini\" > \"$0/log\" 2>&1 & pooler=$!";
        let guardian = guardian(&folder, program, run, "kill -9 $pooler")?;
        let pooler = Self { port, guardian };
        let deadline = Instant::now() + START;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            if Instant::now() > deadline {
                bail!("PgBouncer did not come up: {}", last_lines(&folder.join("log")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(pooler)
    }

    /// The port on 127.0.0.1.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// A URL of the cluster, led through the pooler.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}

fn create_database(url: &str) -> anyhow::Result<String> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("bench_test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    psql(url, &format!("CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0"))?;
    let (base, parameters) =
        url.split_once('?').map_or((url, String::new()), |(base, rest)| (base, format!("?{rest}")));
    let server = base.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
    Ok(format!("{server}/{name}{parameters}"))
}

fn psql(url: &str, sql: &str) -> anyhow::Result<String> {
    let output = Command::new(tool("psql")?)
        .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql, url])
        .stdin(Stdio::null())
        .output()?;
    succeeded("psql", &output)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A folder that the server's user owns. Its guardian deletes it.
fn private_folder(prefix: &str) -> anyhow::Result<PathBuf> {
    let folder = TempDir::with_prefix(prefix)?.keep();
    if is_root() {
        let user = postgres_user()?;
        chown(&folder, Some(user), Some(user))?;
    }
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    Ok(folder)
}

/// A shell beside the test process that runs `start`, and when the test process is gone `end`, and deletes the folder. (A
/// process that is killed drops nothing, but its end closes this pipe.) The folder is `$0` and the program `$1`.
fn guardian(folder: &Path, program: &Path, start: &str, end: &str) -> anyhow::Result<Child> {
    // deaf to the interrupt that a person sends to the whole group of processes
    let script = format!("trap '' INT TERM; {start}; read _; {end}; cd /; rm -rf \"$0\"");
    let child = as_user(Path::new("sh"))?
        .args(["-c", &script])
        .args([folder, program])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(child)
}

/// Number of the user `postgres`, which the Debian package makes with a group of the same number or its own.
fn postgres_user() -> anyhow::Result<u32> {
    let output = Command::new("id").args(["-u", "postgres"]).output()?;
    succeeded("id -u postgres", &output)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

/// A command of the user who may run a server: `postgres` instead of root.
fn as_user(program: &Path) -> anyhow::Result<Command> {
    if !is_root() {
        return Ok(Command::new(program));
    }
    postgres_user().context("root runs no server, and there is no user `postgres`")?;
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program).current_dir("/");
    Ok(command)
}

fn tool_as_user(name: &str) -> anyhow::Result<Command> {
    as_user(&tool(name)?)
}

/// A program of PostgreSQL: the newest one that Debian has installed, or the one of the path.
fn tool(name: &str) -> anyhow::Result<PathBuf> {
    static INSTALLED: Mutex<()> = Mutex::new(());
    let _one_at_a_time = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = find_tool(name) {
        return Ok(found);
    }
    install("postgresql")?;
    find_tool(name).with_context(|| format!("the package postgresql brought no {name}"))
}

fn find_tool(name: &str) -> Option<PathBuf> {
    let mut versions: Vec<PathBuf> =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    versions.sort_by_key(|path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()));
    let mut debian = versions.into_iter().rev().map(|version| version.join("bin").join(name));
    debian.find(|file| file.exists()).or_else(|| find_in_path(name))
}

fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists())
}
