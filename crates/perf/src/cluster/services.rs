//! The servers of a benchmark and the places on them: a database and a virtual host each, so that runs do not meet.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context, ensure};
use bench_testkit::{postgres::Postgres, rabbitmq::RabbitMq};

use crate::measure::first_line;

/// PostgreSQL as people run it (commits reach the disk), apart from a cache that fits the machine.
const POSTGRES: &str = "shared_buffers = 256MB\nmax_wal_size = 4GB\n";
/// Counts statements too; costs a little.
const STATEMENTS: &str = "shared_preload_libraries = 'pg_stat_statements'\n";

/// A PostgreSQL server, a RabbitMQ node, and the binaries under test.
pub(crate) struct Services {
    postgres: Postgres,
    /// Started when it is needed: a node that idles takes a tenth of a core.
    broker: OnceLock<RabbitMq>,
    pub(crate) binaries: PathBuf,
    pub(crate) statements: bool,
}

/// A database and a virtual host on the services, migrated.
pub(crate) struct ServiceUrls {
    pub(crate) store: String,
    pub(crate) queue: String,
}

impl Services {
    /// Starts PostgreSQL.
    pub(crate) fn start(binaries: &Path, statements: bool) -> anyhow::Result<Self> {
        let settings = format!("{POSTGRES}{}", if statements { STATEMENTS } else { "" });
        let postgres = Postgres::start_with(&settings)?;
        Ok(Self { postgres, broker: OnceLock::new(), binaries: binaries.to_owned(), statements })
    }

    /// A fresh place.
    pub(crate) fn place(&self) -> anyhow::Result<ServiceUrls> {
        if self.broker.get().is_none() {
            drop(self.broker.set(RabbitMq::start()?));
        }
        let broker = self.broker.get().context("RabbitMQ is running")?;
        self.migrated(ServiceUrls { store: self.postgres.create_database()?, queue: broker.new_vhost()? })
    }

    /// A fresh database for scenarios without a broker.
    pub(crate) fn database(&self) -> anyhow::Result<ServiceUrls> {
        self.migrated(ServiceUrls { store: self.postgres.create_database()?, queue: "memory:".to_owned() })
    }

    fn migrated(&self, place: ServiceUrls) -> anyhow::Result<ServiceUrls> {
        let output = self.command("bench-coord", &place).arg("migrate").output()?;
        ensure!(output.status.success(), "migrate failed: {}", first_line(&output.stderr));
        if self.statements {
            let name = place.store.rsplit('/').next().unwrap_or_default();
            self.postgres.sql(name, "CREATE EXTENSION pg_stat_statements")?;
        }
        Ok(place)
    }

    /// One of the binaries, told where to work, with nothing else in its environment.
    pub(crate) fn command(&self, binary: &str, place: &ServiceUrls) -> Command {
        let mut command = Command::new(self.binaries.join(binary));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("USER", "perf").env("NO_COLOR", "1");
        command.env("BENCH_STORE_URL", &place.store).env("BENCH_QUEUE_URL", &place.queue);
        command.stdin(std::process::Stdio::null());
        command
    }

    /// Processes whose CPU time is the services'.
    pub(crate) fn processes(&self) -> anyhow::Result<Vec<(&'static str, u32)>> {
        let broker = self.broker.get().and_then(RabbitMq::pid).context("RabbitMQ is running")?;
        Ok(vec![("postgres", self.postgres.pid()?), ("rabbitmq", broker)])
    }

    /// The statements of a database that took longest: calls, milliseconds in sum, rows, text.
    pub(crate) fn longest_statements(&self, place: &ServiceUrls) -> anyhow::Result<Vec<String>> {
        if !self.statements {
            return Ok(Vec::new());
        }
        let name = place.store.rsplit('/').next().unwrap_or_default();
        let sql = "SELECT calls || ' calls, ' || round(total_exec_time::numeric, 1) || ' ms, ' || rows || ' rows: ' || \
            left(regexp_replace(query, '\\s+', ' ', 'g'), 240) FROM pg_stat_statements \
            WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
            ORDER BY total_exec_time DESC LIMIT 40";
        Ok(self.postgres.sql(name, sql)?.lines().map(str::to_owned).collect())
    }
}
