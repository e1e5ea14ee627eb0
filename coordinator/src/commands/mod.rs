//! One verb, one file: it reads its flags, calls the rooms below, prints, and names the exit code. Verbs do not use each other;
//! what two of them need is in `runs`, `comparison`, `results` or `standing`.
//!
//! | group | verbs |
//! |---|---|
//! | runs | `submit`, `matrix`, `resume`, `status`, `list`, `watch`, `pause`, `cancel`, `retry`, `rename`, `tag`, `delete` |
//! | results | `report`, `show`, `compare`, `gate`, `trace`, `score`, `judge_audit`, `import`, `export`, `archive`, `site` |
//! | before a run | `init`, `estimate`, `datasets`, `systems`, `models`, `prices`, `load`, `doctor`, `config` |
//! | the store | `migrate`, `restore`, `gc`, `banks`, `backup` |
//! | a cluster | `serve`, `probe`, `meter`, `dead` |
//! | the shell | `completions`, `complete`, `man` |
//!
//! `rejudge`, `rescore` and `retry --wrong` are a `submit` with other words, `version` is a line. `run` is where all of them begin. To
//! add a verb: a file here, its flags and a line of `Verb` in `cli`, and a line below.

#[cfg(feature = "archive")]
mod archive;
mod backup;
mod banks;
mod cancel;
mod compare;
mod complete;
mod completions;
mod config;
mod datasets;
mod dead;
mod delete;
mod doctor;
mod estimate;
mod export;
mod gate;
mod gc;
mod import;
mod init;
mod judge_audit;
mod list;
mod load;
mod man;
mod matrix;
mod meter;
mod migrate;
mod models;
mod pause;
mod prices;
#[cfg(feature = "cluster")]
mod probe;
mod rename;
mod report;
mod restore;
mod resume;
mod retry;
mod score;
#[cfg(feature = "cluster")]
mod serve;
mod show;
#[cfg(feature = "archive")]
mod site;
mod status;
mod submit;
mod systems;
mod tag;
mod trace;
mod watch;

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;

use crate::{
    app::{App, home},
    cli::{Cli, ConfigVerb, Verb},
    exit::{CliError, CliResult, Exit},
    out,
};

/// Runs a verb.
///
/// # Errors
/// A readable message with its exit code.
pub(crate) async fn run(mut cli: Cli) -> CliResult {
    // verbs that are a submit with other words
    cli.verb = match cli.verb {
        Verb::Rejudge(args) => Verb::Submit(Box::new(args.into_submit())),
        Verb::Rescore(args) => Verb::Submit(Box::new(args.into_submit())),
        Verb::Retry(args) if args.wrong => Verb::Submit(Box::new(args.into_submit())),
        verb => verb,
    };
    // these need no settings, so that they work where settings are broken
    match &cli.verb {
        Verb::Completions { shell } => return completions::run(*shell),
        Verb::Man(args) => return man::run(args),
        Verb::Score(args) => return score::run(args),
        Verb::Init(args) => return init::run(args),
        Verb::Version => {
            out::result(&format!("bench-coord {}", bench_worker::version::VERSION));
            return Ok(Exit::Done);
        }
        Verb::Matrix(args) => return of_matrix(&cli, matrix::read(&cli, args)?).await,
        Verb::Submit(args) | Verb::Estimate(args) if cli.several.is_some() => {
            let several = cli.several.clone().unwrap_or_default();
            let here = if several.has_all_datasets() { datasets::here(&cli).await? } else { Vec::new() };
            let is_estimate = matches!(cli.verb, Verb::Estimate(_));
            return of_matrix(&cli, matrix::read_several(args, &several, (&here, is_estimate))?).await;
        }
        Verb::Import(args) if args.forms => return Ok(import::show_forms(args.json)),
        Verb::Config(ConfigVerb::Trust) => return config::trust(&cli),
        #[cfg(feature = "cluster")]
        Verb::Probe { url } => return probe::run(url).await,
        _ => {}
    }
    let app = App::load(&cli)?;
    if home::uses(&cli.verb) {
        app.check_links()?;
    }
    if home::acts(&cli.verb) {
        app.check_home().await?;
    }
    #[cfg(feature = "cluster")]
    if let Verb::Serve(args) = &cli.verb {
        return serve::run(app, args).await;
    }
    if let Verb::Meter(args) = &cli.verb {
        let ended = Box::pin(meter::run(&app, args)).await;
        app.close().await;
        return ended;
    }
    let ended = AssertUnwindSafe(run_until_interrupted(&app, &cli.verb)).catch_unwind().await;
    // however it ended
    app.close().await;
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A matrix is as many command lines as it has cells: the process has the settings of the first.
async fn of_matrix(cli: &Cli, lines: matrix::Lines) -> CliResult {
    let app = lines.load_first(cli)?;
    app.check_links()?;
    if !lines.is_dry_run() {
        app.check_home().await?;
    }
    let run = async {
        tokio::select! {
            ended = matrix::run(&app, lines) => ended,
            () = app.interrupted() => Err(CliError::resumable("interrupted")),
        }
    };
    let ended = AssertUnwindSafe(run).catch_unwind().await;
    app.close().await;
    ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A verb that does not listen for itself ends at the first signal.
async fn run_until_interrupted(app: &App, verb: &Verb) -> CliResult {
    tokio::select! {
        ended = run_with(app, verb) => ended,
        () = app.interrupted() => Err(CliError::resumable("interrupted")),
    }
}

/// Runs a verb that ends by itself.
async fn run_with(app: &App, verb: &Verb) -> CliResult {
    match verb {
        Verb::Submit(args) => Box::pin(submit::run(app, args)).await,
        Verb::Estimate(args) => Box::pin(estimate::run(app, args)).await,
        Verb::Resume(args) => Box::pin(resume::run(app, args)).await,
        Verb::Retry(args) => Box::pin(retry::run(app, args)).await,
        Verb::Pause(args) => pause::run(app, args).await,
        Verb::Cancel(args) => cancel::run(app, args).await,
        Verb::Status(args) => status::run(app, args).await,
        Verb::List(args) => list::run(app, args).await,
        Verb::Rename(args) => rename::run(app, args).await,
        Verb::Tag(args) => tag::run(app, args).await,
        Verb::Delete(args) => delete::run(app, args).await,
        Verb::Watch(args) => watch::run(app, args).await,
        Verb::Report(args) => Box::pin(report::run(app, args)).await,
        // became a submit above, or was answered there
        Verb::Rejudge(_) | Verb::Rescore(_) | Verb::Version | Verb::Matrix(_) => Ok(Exit::Done),
        // ends by signals, and has the app for itself
        #[cfg(feature = "cluster")]
        Verb::Serve(_) => Ok(Exit::Done),
        Verb::Compare(args) => compare::run(app, args).await,
        Verb::Gate(args) => Box::pin(gate::run(app, args)).await,
        Verb::Show(args) => Box::pin(show::run(app, args)).await,
        Verb::Trace(args) => trace::run(app, args).await,
        Verb::Export(args) => export::run(app, args).await,
        #[cfg(feature = "archive")]
        Verb::Archive(verb) => Box::pin(archive::run(app, verb)).await,
        #[cfg(feature = "archive")]
        Verb::Site(args) => Box::pin(site::run(app, args)).await,
        Verb::Import(args) => Box::pin(import::run(app, args)).await,
        Verb::JudgeAudit(args) => Box::pin(judge_audit::run(app, args)).await,
        Verb::Datasets(verb) => datasets::run(app, verb).await,
        Verb::Systems(verb) => Box::pin(systems::run(app, verb)).await,
        Verb::Models(verb) => models::run(app, verb),
        // ends by signals, as `serve`
        Verb::Meter(_) => Ok(Exit::Done),
        Verb::Prices(verb) => prices::run(app, verb).await,
        Verb::Load(args) => Box::pin(load::run(app, args)).await,
        Verb::Config(verb) => config::run(app, verb),
        Verb::Gc(args) => gc::run(app, args).await,
        Verb::Banks(verb) => banks::run(app, verb).await,
        Verb::Backup(args) => backup::run(app, args).await,
        Verb::Migrate(args) => migrate::run(app, args).await,
        Verb::Dead(verb) => dead::run(app, verb).await,
        Verb::Restore => restore::run(app).await,
        Verb::Doctor(args) => doctor::run(app, args).await,
        Verb::Complete(args) => complete::run(app, args).await,
        Verb::Completions { shell } => completions::run(*shell),
        Verb::Man(args) => man::run(args),
        Verb::Score(args) => score::run(args),
        Verb::Init(args) => init::run(args),
        #[cfg(feature = "cluster")]
        Verb::Probe { url } => probe::run(url).await,
    }
}
