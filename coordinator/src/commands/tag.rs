//! `tag RUN TAG…`: words by which runs are found again. Results, fingerprint and digest know nothing of them.

use crate::{
    app::App,
    cli::TagArgs,
    exit::{CliResult, Exit},
    out,
    standing::find_run,
};

/// Adds tags to a run, or takes them away; prints those that it has then, one a line.
pub(super) async fn run(app: &App, args: &TagArgs) -> CliResult {
    let store = app.open_store().await?;
    let run = find_run(store.as_ref(), &args.run).await?;
    let mut tags = run.tags;
    if args.remove {
        // one that was given when blanks around it were kept is named without them
        tags.retain(|tag| !args.tags.iter().any(|removed| removed == tag.trim()));
    } else {
        for tag in &args.tags {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
    }
    store.set_labels(run.run_no, run.name.as_deref(), &tags).await?;
    if !tags.is_empty() {
        out::result(&tags.join("\n"));
    }
    Ok(Exit::Done)
}
