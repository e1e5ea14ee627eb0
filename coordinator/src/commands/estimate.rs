//! `estimate`: calls, tokens, dollars, minutes and the interval to expect, before paying.

use crate::{
    app::App,
    cli::SubmitArgs,
    exit::CliResult,
    runs::{
        controls::PlannedGroup,
        estimate::{Counting, RunEstimate},
        fork,
    },
};

/// Plans the run as `submit` would and prints its estimate. Needs no key and stores nothing.
pub(super) async fn run(app: &App, args: &SubmitArgs) -> CliResult {
    if let (Some(source), Some(from)) = (&args.fork, args.from) {
        let dry = SubmitArgs { dry_run: true, ..args.clone() };
        return fork::run(app, &dry, source, from).await;
    }
    let group = PlannedGroup::plan(app, args, false).await?;
    let estimate = RunEstimate::of_group(app, &group, Counting::Exact).await;
    estimate.repeated(args.repeats.unwrap_or(1)).print(args.output.json)
}
