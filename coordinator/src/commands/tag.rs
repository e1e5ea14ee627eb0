//! `tag RUN TAG…`: words by which runs are found again. Results, fingerprint and digest know nothing of them.

use serde_json::json;

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
    let absent = absent(&tags, &args.tags);
    if args.remove {
        // one that was given when blanks around it were kept is named without them
        tags.retain(|tag| !args.tags.iter().any(|removed| removed == tag.trim()));
        if !absent.is_empty() {
            out::note(&format!("{} has no tag {}: nothing of that was taken away", run.run_id, absent.join(", ")));
        }
    } else {
        for tag in &args.tags {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
    }
    store.set_labels(run.run_no, run.name.as_deref(), &tags).await?;
    if args.json {
        out::json(&json!({ "id": run.run_id, "tags": tags }));
    } else if !tags.is_empty() {
        out::result(&tags.join("\n"));
    }
    Ok(Exit::Done)
}

/// Of the tags that are named those that are not there, in quotes.
fn absent(there: &[String], named: &[String]) -> Vec<String> {
    let is_there = |name: &&String| there.iter().any(|tag| tag.trim() == name.as_str());
    named.iter().filter(|name| !is_there(name)).map(|name| format!("'{name}'")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_are_not_there_are_told() {
        let tags = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        assert_eq!(absent(&tags(&["a", " b "]), &tags(&["b", "c", "a"])), ["'c'"]);
    }
}
