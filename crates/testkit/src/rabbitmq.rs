//! Private RabbitMQ nodes for tests: own ports, folders, cookie and epmd; never the machine's own broker.
//!
//! The Debian package is enough: `apt-get install -y --no-install-recommends rabbitmq-server`.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail, ensure};
use tempfile::TempDir;

const SERVER: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const CONTROL: &str = "/usr/lib/rabbitmq/bin/rabbitmqctl";
/// Longest wait for a node to listen; it takes three seconds on an idle machine.
const START: Duration = Duration::from_secs(90);

/// A node of its own. It is killed, and its data deleted, when this is dropped.
#[derive(Debug)]
pub struct RabbitMq {
    folder: TempDir,
    name: String,
    port: u16,
    dist_port: u16,
    epmd_port: u16,
    epmd: Child,
    node: Option<Child>,
    guardian: Option<Child>,
}

impl RabbitMq {
    /// Starts a node without plugins and waits until it listens.
    ///
    /// # Errors
    /// When RabbitMQ is not installed, or does not come up; says what to install, or ends with the node's log.
    pub fn start() -> anyhow::Result<Self> {
        ensure!(
            Path::new(SERVER).exists(),
            "RabbitMQ is not installed: run apt-get install -y --no-install-recommends rabbitmq-server"
        );
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = TempDir::with_prefix("bench-rabbitmq-")?;
        let [port, dist_port, epmd_port] = free_ports()?;
        let name = format!("bench{}x{}@localhost", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        fs::create_dir(folder.path().join("home"))?;
        let cookie = folder.path().join("home/.erlang.cookie");
        fs::write(&cookie, "benchcoordtests")?;
        fs::set_permissions(&cookie, fs::Permissions::from_mode(0o400))?;
        fs::write(
            folder.path().join("rabbitmq.conf"),
            format!(
                "listeners.tcp.1 = 127.0.0.1:{port}\nlog.console = false\n\
                 vm_memory_high_watermark.absolute = 1GB\ndisk_free_limit.absolute = 50MB\n"
            ),
        )?;
        fs::write(folder.path().join("enabled_plugins"), "[].\n")?;
        fs::write(folder.path().join("env.conf"), "")?;
        let epmd = Command::new("epmd")
            .args(["-port", &epmd_port.to_string(), "-address", "127.0.0.1", "-relaxed_command_check"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start epmd")?;
        let mut broker = Self { folder, name, port, dist_port, epmd_port, epmd, node: None, guardian: None };
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
        // one call instead of two of rabbitmqctl, each of which costs a third of a second
        self.eval(&format!(
            "ok = rabbit_vhost:add(<<\"{vhost}\">>, <<\"test\">>), \
             ok = rabbit_auth_backend_internal:set_permissions(<<\"guest\">>, <<\"{vhost}\">>, <<\".*\">>, <<\".*\">>, <<\".*\">>, <<\"test\">>)."
        ))?;
        Ok(self.url(&vhost))
    }

    /// Runs an Erlang expression on the node.
    ///
    /// # Errors
    /// When the node is down or the expression fails.
    pub fn eval(&self, expression: &str) -> anyhow::Result<String> {
        self.control(&["eval", expression])
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
        if let Some(mut guardian) = self.guardian.take() {
            let _ = guardian.kill();
            let _ = guardian.wait();
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
        // a test process that is killed drops nothing: its end closes this pipe, which ends the node and epmd
        let guardian = Command::new("sh")
            .args(["-c", "read _; kill -9 $0 $1", &node.id().to_string(), &self.epmd.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        self.guardian = Some(guardian);
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
        let folder = self.folder.path();
        let mut command = Command::new(program);
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
        let _ = self.epmd.kill();
        let _ = self.epmd.wait();
    }
}

/// Ports that were free a moment ago.
fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let mut listeners = Vec::new();
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        *port = listener.local_addr()?.port();
        listeners.push(listener);
    }
    Ok(ports)
}
