//! Flags of the verbs that hand results on: to files, services, archives and pages.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Flags of `export`.
#[derive(Debug, Clone, Args)]
pub struct ExportArgs {
    /// Run: its id, name, start or end of the id, or `latest`
    pub run: String,
    /// Formats, separated by commas: jsonl, csv, parquet, hypotheses (answers as LongMemEval's programs read them), every-eval-ever (the
    /// result as a record of the shared schema of evaluation results)
    #[arg(long, value_delimiter = ',', value_name = "FORMATS", default_value = "jsonl")]
    pub format: Vec<String>,
    /// Leave cells of CSV that a spreadsheet would compute as they are; without it they begin with ' and are text
    #[arg(long)]
    pub raw_csv: bool,
    /// Write questions.FORMAT (hypotheses.jsonl, every-eval-ever.json) here; one format of text without a folder goes to standard output
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Instead of files: bring the result (settings, figures, digest; no questions) to this MLflow tracking server. Who asks is said by
    /// MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD
    #[arg(long, value_name = "URL", conflicts_with_all = ["format", "raw_csv", "output_dir"])]
    pub mlflow: Option<String>,
    /// Experiment of the server [default: bench-coord/DATASET]
    #[arg(long, value_name = "NAME", requires = "mlflow")]
    pub mlflow_experiment: Option<String>,
    /// Instead of files: log the result (settings, figures, questions by their ids) to this project of Weights & Biases, PROJECT or
    /// ENTITY/PROJECT, by the package wandb of your Python; of a group each of its runs. Who asks is said by WANDB_API_KEY or `wandb
    /// login`; WANDB_MODE=offline keeps it here for `wandb sync`
    #[arg(long, value_name = "PROJECT", conflicts_with_all = ["format", "raw_csv", "output_dir", "mlflow"])]
    pub wandb: Option<String>,
    /// Whether the texts of questions, expected answers and answers go there too [default: never]
    #[arg(long, value_name = "WHICH", value_enum, requires = "wandb")]
    pub texts: Option<ArchivedTexts>,
}

/// Where an archive is: a folder or a bucket; without a word that of the settings.
#[derive(Debug, Clone, Args)]
pub struct ArchiveAt {
    /// Folder, or s3://BUCKET/PATH, gs://…, az://… [env: BENCH_ARCHIVE_URL]
    #[arg(long, value_name = "URL")]
    pub archive: Option<String>,
}

/// Flags of `site`.
#[derive(Debug, Clone, Args)]
pub struct SiteArgs {
    /// Folder of the pages: a new or empty one, or that of earlier pages, which are renewed
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// The archive whose runs stand on the pages
    #[command(flatten)]
    pub at: ArchiveAt,
    /// What others have published on each dataset stands beside our results, marked as unverified
    #[arg(long)]
    pub published: bool,
    /// What stands on the pages as JSON on standard output (the same as DIR/site.json)
    #[arg(long)]
    pub json: bool,
}

/// Whether the texts of questions, memories and answers go into an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArchivedTexts {
    /// Not those of datasets whose authors state no licence
    ByLicence,
    /// Texts of every dataset
    Always,
    /// None: figures, ids and verdicts alone
    Never,
}

/// What is done with finished runs in a folder or a bucket.
#[derive(Debug, Clone, Subcommand)]
pub enum ArchiveVerb {
    /// Bring a finished run, or all runs of a matrix or of repeats, into the archive; may be repeated
    Push {
        /// Run or group: its id, name, start or end of the id, or `latest`; without one every finished run that is not archived yet
        run: Option<String>,
        /// Whether the texts of questions, memories and answers go there too; a run without them cannot be restored [default: the
        /// setting archive.texts, which is by-licence]
        #[arg(long, value_enum, value_name = "WHEN")]
        texts: Option<ArchivedTexts>,
        /// The archive that they go to
        #[command(flatten)]
        at: ArchiveAt,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// All archived runs, oldest first
    List {
        /// The archive that is listed
        #[command(flatten)]
        at: ArchiveAt,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Get a run out: its files, or the whole run back into this store
    Fetch {
        /// Run: its id, name, start or end of the id, or `latest`; or the id of a matrix, for all of its runs
        run: String,
        /// The archive that it comes from
        #[command(flatten)]
        at: ArchiveAt,
        /// Where the files go [default: $BENCH_HOME/runs/RUN]
        #[arg(long, value_name = "DIR")]
        output_dir: Option<PathBuf>,
        /// Rebuild the run in the store, so that it can be reported, compared and judged again
        #[arg(long)]
        restore: bool,
        /// Also let the run be carried on here: it brings an adapter, which runs commands and sends secrets as it says. Read
        /// `system.settings.adapter` in its run.json first
        #[arg(long, requires = "restore")]
        trust_system: bool,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Check every byte of a run, or of all
    Verify {
        /// Run: its id, name, start or end of the id, or `latest`; all without one
        run: Option<String>,
        /// The archive that is checked
        #[command(flatten)]
        at: ArchiveAt,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// Scores over time with their intervals; a line has the runs of one system that were asked and graded alike,
    /// whatever its version, settings and number of hits were
    Trajectory {
        /// The archive whose scores these are
        #[command(flatten)]
        at: ArchiveAt,
        /// Only this dataset
        #[arg(long, short = 'b', value_name = "NAME")]
        dataset: Option<String>,
        /// Only this memory system
        #[arg(long, short = 'p', value_name = "NAME")]
        system: Option<String>,
        /// Only this preset
        #[arg(long, value_name = "NAME")]
        preset: Option<String>,
        /// Write the picture here
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// JSON on standard output
        #[arg(long)]
        json: bool,
    },
    /// JSON of a badge, as shields.io reads it
    Badge {
        /// Run: its id, name, start or end of the id, or `latest`
        #[arg(default_value = "latest")]
        run: String,
        /// The archive that the badge is about
        #[command(flatten)]
        at: ArchiveAt,
    },
}
