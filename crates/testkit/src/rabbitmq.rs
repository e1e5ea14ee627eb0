//! Private RabbitMQ nodes for tests: own ports, folders, cookie and epmd; never the machine's own broker.
//!
//! The Debian package is enough: `apt-get install -y --no-install-recommends rabbitmq-server`. With `BENCH_TEST_AMQP_URL` (an
//! administrator's URL) [`shared`] uses that broker instead; its management plugin makes the virtual hosts, at
//! `BENCH_TEST_AMQP_API` or port 15672 of the same machine; they stay.

use std::{
    fs,
    io::Write as _,
    net::{SocketAddr, TcpStream},
    os::unix::fs::PermissionsExt as _,
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

use crate::{http, packages::install, ports};

const EXTERNAL: &str = "BENCH_TEST_AMQP_URL";
const EXTERNAL_API: &str = "BENCH_TEST_AMQP_API";

const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const CONTROL: &str = "/usr/lib/rabbitmq/bin/rabbitmqctl";
const CALL: &str = "erl_call";
/// What nodes and those who call them prove themselves with; they listen on this machine alone.
const COOKIE: &str = "benchcoordtests";
/// Names the root folder of another system whose RabbitMQ is tested (`scripts/rabbitmq-4.sh`).
const OTHER_ROOT: &str = "BENCH_TEST_RABBITMQ_ROOT";
/// Longest wait for a node to listen; it takes three seconds on an idle machine.
const START: Duration = Duration::from_secs(90);

/// A user with the permissions that docs/CLUSTER.md names, and no others.
#[derive(Debug, Clone, Copy)]
struct User<'a> {
    name: &'a str,
    configure: &'a str,
    write: &'a str,
    read: &'a str,
}

/// Password of both users; no output may ever hold it.
pub const PASSWORD: &str = "planted-broker-password";
/// `migrate` and `serve`. Backslashes are doubled: patterns stand inside quotes of Erlang or JSON.
const COORDINATOR: User<'static> = User {
    name: "bench-coordinator",
    configure: r"^bench\\..*$",
    write: r"^(bench\\..*|amq\\.default)$",
    read: r"^bench\\..*$",
};
/// Everybody else.
const WORKER: User<'static> = User { name: "bench-worker", configure: "^$", write: "^$", read: r"^bench\\..*$" };

/// A virtual host by the URLs of those who use it.
#[derive(Debug, Clone)]
pub struct Vhost {
    /// For an administrator: what tests look at and damage.
    pub admin: String,
    /// For `migrate` and `serve`.
    pub coordinator: String,
    /// For workers and people.
    pub worker: String,
}

impl Vhost {
    fn new(scheme: &str, admin: &str, place: &str, name: &str) -> Self {
        let of = |user: &User<'_>| format!("{scheme}://{}:{PASSWORD}@{place}/{name}", user.name);
        Self { admin: format!("{scheme}://{admin}@{place}/{name}"), coordinator: of(&COORDINATOR), worker: of(&WORKER) }
    }
}

/// The broker that all tests of this process share; each has a virtual host of its own.
///
/// # Panics
/// When there is no RabbitMQ and none can be installed; says what to do.
#[must_use]
pub fn shared() -> &'static Broker {
    static BROKER: OnceLock<Broker> = OnceLock::new();
    BROKER.get_or_init(|| match std::env::var(EXTERNAL) {
        Ok(url) => Broker::External(url),
        Err(_) => {
            let node = RabbitMq::start().unwrap_or_else(|e| panic!("tests need RabbitMQ: {e:#}"));
            Broker::Own(Box::new(Mutex::new(node)))
        }
    })
}

/// A broker on which virtual hosts can be made.
#[derive(Debug)]
pub enum Broker {
    /// A node of this process.
    Own(Box<Mutex<RabbitMq>>),
    /// Somebody else's, by its URL.
    External(String),
}

impl Broker {
    /// Makes a virtual host.
    ///
    /// # Errors
    /// When the broker is down, or another's has no management plugin.
    pub fn make_vhost(&self) -> anyhow::Result<Vhost> {
        match self {
            Self::Own(node) => node.lock().unwrap_or_else(PoisonError::into_inner).make_vhost(&fresh_name()),
            Self::External(url) => external_vhost(url, &fresh_name()),
        }
    }
}

fn fresh_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("bench-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Makes a virtual host and the worker's user by the management plugin's API.
fn external_vhost(url: &str, name: &str) -> anyhow::Result<Vhost> {
    let (scheme, rest) = url.split_once("://").context("no URL")?;
    let authority = rest.split('/').next().unwrap_or_default();
    let (user, place) = authority.rsplit_once('@').unwrap_or(("guest:guest", authority));
    let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
    let api = std::env::var(EXTERNAL_API).unwrap_or_else(|_| format!("{host}:15672"));
    let (admin_name, admin_password) = user.split_once(':').unwrap_or((user, ""));
    let put = |path: &str, body: &str| {
        let reply = http::request("PUT", &api, path, Some((admin_name, admin_password)), body)
            .with_context(|| format!("the management plugin at {api} ({EXTERNAL_API})"))?;
        anyhow::ensure!(reply.status < 300, "{api} answers {} to PUT {path}: {}", reply.status, reply.body);
        anyhow::Ok(())
    };
    put(&format!("/api/vhosts/{name}"), "{}")?;
    let all = User { name: admin_name, configure: ".*", write: ".*", read: ".*" };
    for user in [COORDINATOR, WORKER] {
        put(&format!("/api/users/{}", user.name), &format!("{{\"password\":\"{PASSWORD}\",\"tags\":\"\"}}"))?;
    }
    for User { name: user, configure, write, read } in [all, COORDINATOR, WORKER] {
        let permissions = format!("{{\"configure\":\"{configure}\",\"write\":\"{write}\",\"read\":\"{read}\"}}");
        put(&format!("/api/permissions/{name}/{user}"), &permissions)?;
    }
    Ok(Vhost::new(scheme, user, place, name))
}

/// A node of its own. It is killed, and its data deleted, when this is dropped.
#[derive(Debug)]
pub struct RabbitMq {
    /// Root folder of another system, whose RabbitMQ is run.
    root: Option<PathBuf>,
    folder: TempDir,
    name: String,
    port: u16,
    dist_port: u16,
    epmd_port: u16,
    /// Its port mapper; nodes of one cluster share that of the first.
    epmd: Option<Child>,
    node: Option<Child>,
    guardian: Child,
}

impl RabbitMq {
    /// Where files lie that a node reads: inside the other root folder, when there is one.
    ///
    /// # Errors
    /// When no folder can be made.
    pub fn folder_for_files() -> anyhow::Result<TempDir> {
        match std::env::var_os(OTHER_ROOT) {
            Some(root) => Ok(TempDir::with_prefix_in("bench-files-", PathBuf::from(root).join("tmp"))?),
            None => Ok(TempDir::with_prefix("bench-files-")?),
        }
    }

    /// A path as the node sees it.
    #[must_use]
    pub fn path_for_node(path: &Path) -> PathBuf {
        let inside = std::env::var_os(OTHER_ROOT).and_then(|root| Some(path.strip_prefix(root).ok()?.to_owned()));
        inside.map_or_else(|| path.to_owned(), |inside| Path::new("/").join(inside))
    }

    /// Starts a node without plugins and waits until it listens.
    ///
    /// # Errors
    /// When RabbitMQ is not installed, or does not come up; says what to install, or ends with the node's log.
    pub fn start() -> anyhow::Result<Self> {
        Self::start_with("")
    }

    /// Starts a node with further lines of configuration, for example a listener for TLS.
    ///
    /// # Errors
    /// As [`RabbitMq::start`].
    pub fn start_with(configuration: &str) -> anyhow::Result<Self> {
        Self::start_beside(None, configuration)
    }

    /// Starts a node that uses the port mapper of another one.
    fn start_beside(other: Option<&Self>, configuration: &str) -> anyhow::Result<Self> {
        let root = std::env::var_os(OTHER_ROOT).map(PathBuf::from);
        let server = root.as_ref().map_or_else(|| PathBuf::from(SERVER), |root| root.join(&SERVER[1..]));
        if root.is_none() && !server.exists() {
            install("rabbitmq-server")?;
        }
        ensure!(server.exists(), "there is no RabbitMQ at {}", server.display());
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = match &root {
            Some(root) => TempDir::with_prefix_in("bench-rabbitmq-", root.join("tmp"))?,
            None => TempDir::with_prefix("bench-rabbitmq-")?,
        };
        let [port, dist_port, epmd_port] = ports::reserve()?;
        let name = format!("bench{}x{}@localhost", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        fs::create_dir(folder.path().join("home"))?;
        let cookie = folder.path().join("home/.erlang.cookie");
        fs::write(&cookie, COOKIE)?;
        fs::set_permissions(&cookie, fs::Permissions::from_mode(0o400))?;
        fs::write(
            folder.path().join("rabbitmq.conf"),
            format!(
                "listeners.tcp.1 = 127.0.0.1:{port}\nlog.console = false\n\
                 vm_memory_high_watermark.absolute = 1GB\ndisk_free_limit.absolute = 50MB\n{configuration}\n"
            ),
        )?;
        fs::write(folder.path().join("enabled_plugins"), "[].\n")?;
        fs::write(folder.path().join("env.conf"), "")?;
        let (epmd_port, epmd) = match other {
            Some(other) => (other.epmd_port, None),
            None => (epmd_port, Some(start_epmd(epmd_port)?)),
        };
        let guardian = guardian(epmd.as_ref(), folder.path())?;
        let mut broker = Self { root, folder, name, port, dist_port, epmd_port, epmd, node: None, guardian };
        broker.restart()?;
        Ok(broker)
    }

    /// Where clients connect to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Process id of the node; `None` while it is down.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.node.as_ref().map(Child::id)
    }

    /// URL of a virtual host for the user `guest`.
    #[must_use]
    pub fn url(&self, vhost: &str) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/{vhost}", self.port)
    }

    /// Makes a virtual host that `guest` may use, and returns its URL. Tests that have one each do not meet.
    ///
    /// # Errors
    /// When the node is down.
    pub fn new_vhost(&self) -> anyhow::Result<String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let vhost = format!("test{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.eval(&format!(
            "ok = rabbit_vhost:add(<<\"{vhost}\">>, <<\"test\">>), \
             ok = rabbit_auth_backend_internal:set_permissions(<<\"guest\">>, <<\"{vhost}\">>, <<\".*\">>, <<\".*\">>, <<\".*\">>, <<\"test\">>)."
        ))?;
        Ok(self.url(&vhost))
    }

    /// Makes a virtual host of this name, and the users of a cluster with their permissions.
    ///
    /// # Errors
    /// When the node is down.
    pub fn make_vhost(&self, name: &str) -> anyhow::Result<Vhost> {
        let add = |user: &User<'_>| {
            format!(
                "case rabbit_auth_backend_internal:exists(<<\"{0}\">>) of true -> ok; false -> \
                 ok = rabbit_auth_backend_internal:add_user(<<\"{0}\">>, <<\"{PASSWORD}\">>, <<\"test\">>) end",
                user.name
            )
        };
        let grant = |User { name: user, configure, write, read }: &User<'_>| {
            format!(
                "ok = rabbit_auth_backend_internal:set_permissions(<<\"{user}\">>, <<\"{name}\">>, <<\"{configure}\">>, \
                 <<\"{write}\">>, <<\"{read}\">>, <<\"test\">>)"
            )
        };
        let guest = User { name: "guest", configure: ".*", write: ".*", read: ".*" };
        let steps = [
            format!("ok = rabbit_vhost:add(<<\"{name}\">>, <<\"test\">>)"),
            add(&COORDINATOR),
            add(&WORKER),
            grant(&guest),
            grant(&COORDINATOR),
            grant(&WORKER),
        ];
        self.eval(&format!("{}.", steps.join(", ")))?;
        Ok(Vhost::new("amqp", "guest:guest", &format!("127.0.0.1:{}", self.port), name))
    }

    /// Kills the node and deletes all that it knew: virtual hosts, users, queues, messages.
    ///
    /// # Errors
    /// When the files cannot be deleted.
    pub fn kill_and_forget(&mut self) -> anyhow::Result<()> {
        self.kill();
        fs::remove_dir_all(self.folder.path().join("mnesia"))?;
        Ok(())
    }

    /// Runs Erlang expressions on the node and returns the value of the last one. `rabbitmqctl eval` does the same, but starts a
    /// virtual machine for it: a second of the processor, where this is a few milliseconds.
    ///
    /// # Errors
    /// When the node is down or an expression fails.
    pub fn eval(&self, expressions: &str) -> anyhow::Result<String> {
        // each caller is a node of its own: without a name of its own all would be the same one
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let caller = format!("c{}x{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut call = self.command(CALL);
        call.args(["-name", &self.name, "-h", &caller, "-c", COOKIE, "-e"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut call = call.spawn().with_context(|| format!("{CALL}, which is part of Erlang"))?;
        writeln!(call.stdin.take().context("no standard input")?, "{expressions}")?;
        let output = call.wait_with_output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let said = text(&output.stdout);
        match said.strip_prefix("{ok, ").and_then(|value| value.strip_suffix('}')) {
            Some(value) => Ok(value.to_owned()),
            None => bail!("Erlang failed at {expressions}: {said} {}", text(&output.stderr)),
        }
    }

    /// Runs `rabbitmqctl` and returns what it prints.
    ///
    /// # Errors
    /// When it fails; with what it said.
    pub fn control(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(CONTROL).arg("--quiet").args(arguments).stdin(Stdio::null()).output()?;
        let text = |bytes| String::from_utf8_lossy(bytes).trim().to_owned();
        if !output.status.success() {
            bail!("rabbitmqctl {} failed: {} {}", arguments.join(" "), text(&output.stdout), text(&output.stderr));
        }
        Ok(text(&output.stdout))
    }

    /// Writes the names of new quorum queues to disk, as RabbitMQ 3.10 does only every three minutes. A node that is killed
    /// before comes back with the queue empty and without a leader: nothing is confirmed until the queue is deleted.
    ///
    /// # Errors
    /// When the node is down.
    pub fn settle(&self) -> anyhow::Result<()> {
        self.eval("ok = dets:sync(ra_directory_reverse), ok = dets:sync(ra_log_meta).").map(drop)
    }

    /// Kills the node as a power cut would (SIGKILL). Its data stay.
    pub fn kill(&mut self) {
        if let Some(mut node) = self.node.take() {
            // it may be dead already
            let _ = node.kill();
            let _ = node.wait();
        }
    }

    /// Starts the node with its data, when it is not running, and waits until it listens.
    ///
    /// # Errors
    /// When it does not come up; ends with its log.
    pub fn restart(&mut self) -> anyhow::Result<()> {
        self.kill();
        let node = self
            .command(SERVER)
            .arg("-noinput")
            .stdin(Stdio::null())
            .stdout(fs::File::create(self.folder.path().join("stdout"))?)
            .stderr(fs::File::create(self.folder.path().join("stderr"))?)
            .spawn()
            .context("cannot start rabbitmq-server")?;
        if let Some(told) = &mut self.guardian.stdin {
            writeln!(told, "{}", node.id())?;
        }
        let node = self.node.insert(node);
        let deadline = Instant::now() + START;
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        loop {
            if TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok() {
                return Ok(());
            }
            let ended = node.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                bail!("RabbitMQ did not come up ({ended:?}): {}", self.last_words());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A command with the environment that makes it speak to this node alone.
    fn command(&self, program: &str) -> Command {
        let mut command = match &self.root {
            Some(root) => {
                let mut command = Command::new("chroot");
                command.arg(root).arg(program).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
                command
            }
            None => Command::new(program),
        };
        // as the node sees it
        let folder = Self::path_for_node(self.folder.path());
        command
            .env("HOME", folder.join("home"))
            .env("RABBITMQ_NODENAME", &self.name)
            .env("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq.conf"))
            .env("RABBITMQ_CONF_ENV_FILE", folder.join("env.conf"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("enabled_plugins"))
            .env("RABBITMQ_MNESIA_BASE", folder.join("mnesia"))
            .env("RABBITMQ_LOG_BASE", folder.join("log"))
            .env("RABBITMQ_DIST_PORT", self.dist_port.to_string())
            .env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}")
            .env("ERL_EPMD_PORT", self.epmd_port.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            // with this the start script becomes the node, so that our child is what we kill
            .env("RABBITMQ_ALLOW_INPUT", "1");
        command
    }

    fn last_words(&self) -> String {
        let mut files: Vec<PathBuf> = vec![self.folder.path().join("stdout"), self.folder.path().join("stderr")];
        files.extend(
            fs::read_dir(self.folder.path().join("log")).into_iter().flatten().flatten().map(|entry| entry.path()),
        );
        let texts = files.iter().map(|file| fs::read_to_string(file).unwrap_or_default());
        let lines: Vec<String> =
            texts.flat_map(|text| text.lines().rev().take(10).map(str::to_owned).collect::<Vec<_>>()).collect();
        lines.join(" | ")
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        self.kill();
        if let Some(epmd) = &mut self.epmd {
            let _ = epmd.kill();
            let _ = epmd.wait();
        }
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}

fn start_epmd(port: u16) -> anyhow::Result<Child> {
    Command::new("epmd")
        .args(["-port", &port.to_string(), "-address", "127.0.0.1", "-relaxed_command_check"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start epmd")
}

/// Nodes that form one broker.
#[derive(Debug)]
pub struct RabbitMqCluster {
    /// The first one last to be dropped: its port mapper is everybody's.
    nodes: Vec<RabbitMq>,
}

impl RabbitMqCluster {
    /// Starts nodes one after the other; each joins the first.
    ///
    /// # Errors
    /// When a node does not come up or cannot join.
    pub fn start(count: usize) -> anyhow::Result<Self> {
        let first = RabbitMq::start()?;
        let mut nodes = Vec::new();
        for _ in 1..count {
            let node = RabbitMq::start_beside(Some(&first), "")?;
            for arguments in [&["stop_app"][..], &["join_cluster", &first.name], &["start_app"]] {
                let _ = node.control(arguments)?;
            }
            nodes.push(node);
        }
        nodes.push(first);
        nodes.rotate_right(1);
        Ok(Self { nodes })
    }

    /// Makes a virtual host with its users, and returns it as the first node offers it.
    ///
    /// # Errors
    /// When the first node is down.
    pub fn make_vhost(&self, name: &str) -> anyhow::Result<Vhost> {
        self.nodes[0].make_vhost(name)
    }

    /// A virtual host as a node offers it.
    #[must_use]
    pub fn vhost(&self, node: usize, name: &str) -> Vhost {
        Vhost::new("amqp", "guest:guest", &self.nodes[node].address().to_string(), name)
    }

    /// One of its nodes, counted from 0.
    pub fn node(&mut self, node: usize) -> &mut RabbitMq {
        &mut self.nodes[node]
    }
}

impl Drop for RabbitMqCluster {
    fn drop(&mut self) {
        while self.nodes.pop().is_some() {}
    }
}

/// A shell that ends node and epmd and deletes the folder when the test process is gone: one that is killed, or whose broker
/// is a static, drops nothing, but its end closes this pipe. It is told the pid of each node that is started.
fn guardian(epmd: Option<&Child>, folder: &Path) -> anyhow::Result<Child> {
    // deaf to the interrupt that a person sends to the whole group of processes
    let script = "trap '' INT TERM; while read pid; do node=$pid; done; kill -9 $node $0; rm -rf \"$1\"";
    let child = Command::new("sh")
        .args(["-c", script, &epmd.map_or_else(String::new, |epmd| epmd.id().to_string())])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    Ok(child)
}
