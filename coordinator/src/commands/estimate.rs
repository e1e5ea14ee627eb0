//! `estimate`: calls, tokens, dollars, minutes and the interval to expect, before paying.

use crate::{
    app::App,
    cli::SubmitArgs,
    exit::CliResult,
    runs::{
        estimate::{Counting, RunEstimate},
        fork,
        start::{check_detach, plan},
    },
};

/// Plans the run as `submit` would, or refuses it, and prints its estimate. Needs no key and stores nothing.
pub(super) async fn run(app: &App, args: &SubmitArgs) -> CliResult {
    check_detach(args.detach, app.deployment()?)?;
    if let (Some(source), Some(from)) = (&args.fork, args.from) {
        let dry = SubmitArgs { dry_run: true, ..args.clone() };
        return fork::run(app, &dry, source, from).await;
    }
    let group = plan(app, args, false).await?;
    let estimate = RunEstimate::of_group(app, &group, Counting::Exact).await;
    estimate.repeated(args.repeats.unwrap_or(1)).print(args.output.json)
}
