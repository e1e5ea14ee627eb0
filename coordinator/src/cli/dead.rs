//! Flags of `dead`.

use clap::{Args, Subcommand};

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
