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
    /// Runs that have stored something in a memory service, newest first: how many banks, whose, and whether another run may ask them
    List(BanksArgs),
    /// Remove the banks of ended runs from their memory systems, but for those that a run asks which has not ended
    Remove {
        /// Runs: ids, names, starts or ends of ids, or `latest`; a group's id stands for all of its runs
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
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
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
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
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub pool: Vec<String>,
}

/// Verbs of `dead`.
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
    /// All of them
    #[arg(long)]
    pub all: bool,
}
