//! Flags of the verbs that look around before a run: datasets, memory systems, settings, `doctor`, manual pages.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Flags of `doctor`.
#[derive(Debug, Clone, Args)]
pub struct DoctorArgs {
    /// Also ask the configured models for one token each, which proves keys and names
    #[arg(long)]
    pub paid: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// Flags of `init`.
#[derive(Debug, Clone, Args)]
pub struct InitArgs {
    /// A class of Python (mine.py) instead of the adapter file of a server (mine.yaml)
    #[arg(long)]
    pub python: bool,
    /// A class of TypeScript (mine.ts) instead, with its types for editors
    #[arg(long, conflicts_with = "python")]
    pub typescript: bool,
}

/// What is done with datasets: looked at, fetched, checked, made.
#[derive(Debug, Clone, Subcommand)]
pub enum DatasetsVerb {
    /// All datasets
    List {
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// What is known about one, and what did not resolve in it
    Show {
        /// Dataset
        name: String,
        /// Read this file, folder or archive
        #[arg(long, value_name = "FILE")]
        dataset_path: Option<PathBuf>,
        /// List its questions
        #[command(flatten)]
        questions: QuestionsArgs,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Download into the cache
    Fetch {
        /// Dataset
        name: String,
    },
    /// Compare a file with the published checksum
    Verify {
        /// Dataset
        name: String,
        /// This file, folder or archive instead of what would be found
        #[arg(long, value_name = "FILE")]
        dataset_path: Option<PathBuf>,
    },
    /// Write generated data to a file that other runners can read
    Generate {
        /// Dataset
        name: String,
        /// The file
        #[arg(long, short, value_name = "FILE")]
        output: PathBuf,
        /// Form of the file: LoCoMo's schema, or the project's own, which holds everything and is read back by its path
        #[arg(long, value_enum, default_value_t)]
        format: GeneratedForm,
        /// Write over a file that is there already
        #[arg(long)]
        force: bool,
    },
}

/// Which questions of a dataset are listed.
#[derive(Debug, Clone, Args)]
pub struct QuestionsArgs {
    /// List its questions: id, category and text
    #[arg(long)]
    pub questions: bool,
    /// Questions of this category
    #[arg(long, value_name = "NAME", requires = "questions")]
    pub category: Option<String>,
    /// Questions that are listed
    #[arg(long, value_name = "N", default_value_t = 20, requires = "questions")]
    pub most: usize,
    /// Questions that are left out before the first one
    #[arg(long, value_name = "N", default_value_t = 0, requires = "questions")]
    pub skip: usize,
    /// Show what is expected, too
    #[arg(long, requires = "questions")]
    pub gold: bool,
}

/// Form in which a generated dataset is written.
#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
pub enum GeneratedForm {
    /// LoCoMo's schema
    #[default]
    Locomo,
    /// One bank a line, in the project's own form
    Jsonl,
}

impl From<GeneratedForm> for bench_datasets::Form {
    fn from(form: GeneratedForm) -> Self {
        match form {
            GeneratedForm::Locomo => Self::Locomo,
            GeneratedForm::Jsonl => Self::Jsonl,
        }
    }
}

/// What is asked of the table of prices that is built in.
#[derive(Debug, Clone, Subcommand)]
pub enum ModelsVerb {
    /// Models with a known price: dollars per million tokens, context, token encoding, parameters, and where the price is from
    List {
        /// Only names that contain this
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
}

/// What is done with a file of prices.
#[derive(Debug, Clone, Subcommand)]
pub enum PricesVerb {
    /// Read prices from LiteLLM's public table into a price file: shows what differs, and writes with --yes
    Update(PricesUpdateArgs),
}

/// Flags of `prices update`.
#[derive(Debug, Clone, Args)]
pub struct PricesUpdateArgs {
    /// The table (model_prices_and_context_window.json), as a file or by its URL
    #[arg(long, value_name = "FILE|URL")]
    pub from: String,
    /// The price file to write [default: models.price_file, else prices.json]
    #[arg(long, value_name = "FILE")]
    pub to: Option<PathBuf>,
    /// Providers whose own prices are read [default: anthropic, deepseek, gemini, mistral, openai, xai]
    #[arg(long = "provider", value_name = "NAME", value_delimiter = ',')]
    pub providers: Vec<String>,
    /// Write the file
    #[arg(long)]
    pub yes: bool,
    /// JSON on standard output
    #[arg(long)]
    pub json: bool,
}

/// What is done with a memory system before a run.
#[derive(Debug, Clone, Subcommand)]
pub enum SystemsVerb {
    /// All memory systems and what they can do
    List {
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// The hash by which an adapter is allowed, and the lines to set where it is to run: settings, chart, environment
    Hash {
        /// An adapter file, or the name of a shipped one
        #[arg(value_name = "FILE|NAME")]
        system: String,
        /// Mode that it is to run in: raw or consolidated [default: raw]
        #[arg(long, value_name = "MODE")]
        mode: Option<String>,
        /// Dispositions that it is to run with, as in `submit`; their values are not hashed
        #[arg(long, value_name = "NAME=N,…")]
        dispositions: Option<String>,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Store one text in a memory system, ask one question, and show what came back
    Try {
        /// An adapter file, the name of a system, or a class: mine.py:Mine
        #[arg(value_name = "FILE|NAME")]
        system: String,
        /// What is stored
        #[arg(long, value_name = "TEXT", default_value = "My sister Ottilie keeps a tame heron called Brunswick.")]
        text: String,
        /// What is asked
        #[arg(long, value_name = "TEXT", default_value = "What is the heron of Ottilie called?")]
        question: String,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Drive a live memory system through everything that a run asks of it, and explain each step
    Check {
        /// Name of a system, or an adapter file
        #[arg(value_name = "NAME|FILE")]
        system: String,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
}

/// What is asked of the effective values, and of where each comes from.
#[derive(Debug, Clone, Subcommand)]
pub enum ConfigVerb {
    /// Effective settings and where each comes from
    Show {
        /// Those at their defaults too
        #[arg(long)]
        all: bool,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Trust ./bench.toml as it is now, until it changes, and take a .bench that came with this folder as your own: they may decide where
    /// texts and keys go, what runs and what is spent
    Trust,
}

/// Flags of `man`.
#[derive(Debug, Clone, Args)]
pub struct ManArgs {
    /// The verb, as `submit` or `datasets show` [default: the page of the program]
    #[arg(value_name = "VERB")]
    pub verb: Vec<String>,
    /// Write the pages of all verbs into this folder, as ~/.local/share/man/man1
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    pub output_dir: Option<PathBuf>,
}
