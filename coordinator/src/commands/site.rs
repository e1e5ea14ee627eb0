//! `site DIR`: static pages of an archive.

use bench_report::site::{Site, names};

use crate::{
    app::App,
    archive::{
        open_existing,
        site::{Wanted, make},
    },
    cli::SiteArgs,
    exit::{CliResult, Exit},
    out,
};

/// Writes the pages and says where they are; exit 2 for a folder that is not ours, or an archive without runs.
pub(super) async fn run(app: &App, args: &SiteArgs) -> CliResult {
    let place = open_existing(app, args.at.archive.as_deref())?;
    let wanted = Wanted { published: args.published, seed: app.settings().stats_seed };
    let site = make(&place, &args.dir, wanted).await?;
    site.left_out.iter().for_each(|why| out::note(why));
    out::note(&words(&site));
    if args.json {
        out::json(&site);
    } else {
        out::result(&args.dir.join(names::INDEX).display().to_string());
    }
    Ok(Exit::Done)
}

/// How much there is.
fn words(site: &Site) -> String {
    let tables = || site.datasets.iter().flat_map(|dataset| &dataset.tables);
    let results: usize = tables().map(|table| table.rows.len()).sum();
    let pairs: usize = tables().map(|table| table.pairs.len()).sum();
    let of = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    format!("{}, {}, {}", of(site.datasets.len(), "dataset"), of(results, "result"), of(pairs, "pair"))
}
