//! Flags of the verbs for those who operate a store or a cluster.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Flags of `serve`.
#[cfg(feature = "cluster")]
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address for health and scaling; any other than loopback needs BENCH_HTTP_TOKEN or BENCH_HTTP_TOKEN_FILE
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8620")]
    pub listen: String,
    /// Name of this coordinator [default: host and process id]
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
}

/// Arguments of `gc`.
#[derive(Debug, Clone, Args)]
pub struct GcArgs {
    /// Remove the banks of this ended run too; can be given more than once
    #[arg(long, value_name = "RUN")]
    pub banks: Vec<String>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// What `banks` does.
#[derive(Debug, Clone, Subcommand)]
pub enum BanksVerb {
    /// Write the banks that a run has filled into a file that others can import: what its memory system keeps, with sums and what filled it
    Export {
        /// Run: its id, name, start or end of the id, or `latest`
        run: String,
        /// The new file [default: banks-RUN.tar.gz]
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        /// The folder in which a server that you start keeps what it stores; stop it first
        #[arg(long, value_name = "DIR")]
        data: Option<PathBuf>,
        /// Ask the server by the `export` of this adapter file in place of the run's; what is a part of the fingerprint has to be the same
        #[arg(long, value_name = "FILE", conflicts_with = "data")]
        adapter: Option<String>,
        /// Under what terms it may be handed on, as an SPDX name [default: that of the dataset]
        #[arg(long, value_name = "NAME")]
        licence: Option<String>,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Download an archive of filled banks and import it
    Fetch {
        /// Its address
        url: String,
        /// What its sha256 has to be
        #[arg(long, value_name = "HEX", value_parser = sha256)]
        sha256: Option<String>,
        /// How it is called here, and where its files go
        #[command(flatten)]
        import: KeepArgs,
    },
    /// Check an archive of filled banks and keep it here, for `submit --banks-from`
    Import {
        /// The archive: one of `banks export`, or amplihack's metadata.json beside memory_db
        file: PathBuf,
        /// How it is called here, and where its files go
        #[command(flatten)]
        import: KeepArgs,
    },
    /// Runs that have stored something in a memory service, newest first: how many banks, whose, and whether another run may ask them
    List(BanksArgs),
    /// Remove the banks of ended runs from their memory systems, but for those that a run asks which has not ended
    Remove {
        /// Runs: ids, names, starts or ends of ids, or `latest`; a group's id stands for all of its runs. With --imported names of `banks import`
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// Remove imported banks in place of those of runs
        #[arg(long)]
        imported: bool,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// The banks of a run, by their names in the memory system
    Show {
        /// Run: its id, name, start or end of the id, or `latest`
        run: String,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `banks list`.
#[derive(Debug, Clone, Args)]
pub struct BanksArgs {
    /// Only of this memory system
    #[arg(long, value_name = "NAME")]
    pub system: Option<String>,
    /// The newest N
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
    /// Imported banks in place of those of runs
    #[arg(long, conflicts_with = "limit")]
    pub imported: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// How an archive of filled banks is kept here.
#[derive(Debug, Clone, Args)]
pub struct KeepArgs {
    /// Its name here [default: the run that filled it]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Copy its files into this new folder too, for a server that you start on it
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Give the banks to the server of this adapter by its `import`, where `export` has handed them on; --set system.url=ADDRESS says
    /// where it listens
    #[arg(long, value_name = "NAME|FILE", conflicts_with = "data")]
    pub into: Option<String>,
    /// Bytes that may come out of it [default: 200 times its size, at least 16 MiB]
    #[arg(long, value_name = "N")]
    pub max_bytes: Option<u64>,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// A sha256 in hexadecimal.
fn sha256(text: &str) -> Result<String, String> {
    let is_one = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| text.to_ascii_lowercase()).ok_or_else(|| "a sha256 has 64 hexadecimal characters".to_owned())
}

/// Arguments of `backup`.
#[derive(Debug, Clone, Args)]
pub struct BackupArgs {
    /// The new file; one that exists is left alone
    pub file: PathBuf,
}

/// Flags of `migrate`.
#[derive(Debug, Clone, Args)]
pub struct MigrateArgs {
    /// Also drop what only older builds needed: when no process of an older build runs any more
    #[arg(long)]
    pub contract: bool,
    /// Give each program a role of its own in Postgres: make PREFIX_read, _submit, _work and _coordinate where they are missing, and
    /// grant each what it needs; every later migrate does so again
    #[arg(long, value_name = "PREFIX")]
    pub roles: Option<String>,
    /// Pools whose queues are declared
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = super::pool)]
    pub pool: Vec<String>,
}

/// What is done with messages that no worker can read.
#[derive(Debug, Clone, Subcommand)]
pub enum DeadVerb {
    /// How many there are, and why; the oldest first
    List {
        /// Most lines
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Headers and body of one
    Show {
        /// Its number in the list
        #[arg(value_name = "N")]
        number: usize,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Send back into the queue that it came from, for a build that can read it
    Requeue(DeadChoice),
    /// Drop for good
    Drop(DeadChoice),
}

/// Which dead letters.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub struct DeadChoice {
    /// Its number in the list
    #[arg(value_name = "N")]
    pub number: Option<usize>,
    /// Every dead letter
    #[arg(long)]
    pub all: bool,
}
