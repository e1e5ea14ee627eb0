//! `prices update`: a price file made of a public table. What differs is shown first; runs that are stored keep the prices that they
//! were planned with.

use std::{collections::BTreeMap, fmt::Write as _, io::Write as _, path::PathBuf, time::Duration};

use bench_models::prices::{self, LiteLlmTable, ModelKind, PriceTable, PricedModel, per_million};
use bench_proto::redact;
use bench_settings::{Way, bounded};
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use crate::{
    app::App,
    cli::{PricesUpdateArgs, PricesVerb},
    exit::{CliError, CliResult, Exit},
    out,
    results::replace,
};

/// The table has four megabytes.
const MOST_BYTES: u64 = 64 << 20;
/// A table that has not come in so long is not waited for, however a server sends it.
const PATIENCE: Duration = Duration::from_secs(30);
/// Names that are printed of each kind of difference; `--json` has all.
const MOST_SHOWN: usize = 40;

/// Shows what a table changes, and writes the price file when told to.
pub(super) async fn run(app: &App, verb: &PricesVerb) -> CliResult {
    let PricesVerb::Update(args) = verb;
    let to = args
        .to
        .clone()
        .or_else(|| app.settings().models.price_file.clone())
        .unwrap_or_else(|| PathBuf::from("prices.json"));
    let before = existing(&to)?;
    let text = table_text(&app.settings().allow_plaintext, &args.from, PATIENCE).await?;
    let today = jiff::Zoned::now().date().to_string();
    let read = prices::read_litellm(&text, &args.providers, &today, &args.from)
        .map_err(|problem| refused(&args.from, &problem))?;
    let changes = Changes::between(before.as_ref(), &read.table);
    if args.yes {
        let file = read.table.to_file(before.as_ref()).map_err(CliError::infrastructure_of)?;
        replace(&to, |writer| writer.write_all(file.as_bytes()))
            .map_err(|error| CliError::usage(format!("{} cannot be written: {error}", to.display())).because(error))?;
    }
    tell(args, &to, &read, &changes);
    Ok(Exit::Done)
}

/// What is wrong with a table; its address may hold a password.
fn refused(from: &str, problem: &str) -> CliError {
    CliError::usage(format!("--from {}: {problem}", redact::text(from)))
}

/// Why a table did not come, and what to do; its address may hold a password.
fn not_had(from: &str, error: reqwest::Error) -> CliError {
    let error = error.without_url();
    let why = if error.is_timeout() { "it does not come in time".to_owned() } else { error.to_string() };
    let advice = "check the address, or save the table and give --from its FILE; no price was changed";
    CliError::infrastructure(format!("--from {}: {why}: {advice}", redact::text(from))).because(error)
}

/// The price file that is to be written over.
fn existing(path: &std::path::Path) -> Result<Option<PriceTable>, CliError> {
    let refuse = |problem: String| {
        CliError::usage(format!("{} is no price file, so it is not written over: {problem}", path.display()))
    };
    match bounded::text(path, bounded::BY_HAND) {
        Ok(text) => PriceTable::read(&text).map(Some).map_err(refuse),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refuse(error.to_string()).because(error)),
    }
}

/// The text of a table on this disk or elsewhere, bounded.
async fn table_text(allow_plaintext: &[String], from: &str, patience: Duration) -> Result<String, CliError> {
    let mut text = String::new();
    if from.contains("://") {
        if !from.starts_with("https://") && !from.starts_with("http://") {
            return Err(CliError::usage("--from takes a file, or a URL that begins with https://"));
        }
        Way::check_url("--from", from, "http", allow_plaintext).map_err(CliError::usage)?;
        let failed = |error: reqwest::Error| not_had(from, error);
        let client = reqwest::Client::builder().timeout(patience);
        // a redirection must not lead off the encrypted way
        let client = client.https_only(from.starts_with("https://")).build().map_err(failed)?;
        let sent = client.get(from).send().await.and_then(reqwest::Response::error_for_status);
        let mut response = sent.map_err(failed)?;
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if (bytes.len() + chunk.len()) as u64 > MOST_BYTES {
                return Err(CliError::usage(format!("--from: it has more than {} MB", MOST_BYTES >> 20)));
            }
            bytes.extend_from_slice(&chunk);
        }
        return String::from_utf8(bytes).map_err(|_| CliError::usage("--from: it is no text in UTF-8"));
    }
    let unreadable = |error: std::io::Error| CliError::usage(format!("--from {from}: {error}")).because(error);
    let file = tokio::fs::File::open(from).await.map_err(unreadable)?;
    file.take(MOST_BYTES + 1).read_to_string(&mut text).await.map_err(unreadable)?;
    if text.len() as u64 > MOST_BYTES {
        return Err(CliError::usage(format!("--from {from}: it has more than {} MB", MOST_BYTES >> 20)));
    }
    Ok(text)
}

/// What a table changes of the prices that runs are planned with now.
struct Changes<'a> {
    new: Vec<(&'a str, &'a PricedModel)>,
    /// With the price before.
    changed: Vec<(&'a str, &'a PricedModel, &'a PricedModel)>,
    same: usize,
}

impl<'a> Changes<'a> {
    fn between(own: Option<&'a PriceTable>, table: &'a PriceTable) -> Self {
        let mut known: BTreeMap<&str, &PricedModel> = PriceTable::built_in().models().collect();
        known.extend(own.into_iter().flat_map(PriceTable::models));
        let mut changes = Self { new: Vec::new(), changed: Vec::new(), same: 0 };
        for (name, model) in table.models() {
            match known.remove(name) {
                None => changes.new.push((name, model)),
                Some(before) if before.price == model.price => changes.same += 1,
                Some(before) => changes.changed.push((name, before, model)),
            }
        }
        // what had a line of its own and has none in the table costs what its family costs there
        for (name, before) in known {
            let Some(after) = table.covers(name) else { continue };
            let before = own.and_then(|own| own.model(name)).unwrap_or(before);
            if before.price != after.price {
                changes.changed.push((name, before, after));
            }
        }
        changes
    }
}

/// `0.15 / 0.60`, with what is special of it.
fn shown(model: &PricedModel) -> String {
    let rates = model.price.standard.rates;
    let mut text = format!("{} in, {} cached", per_million(rates.input), per_million(rates.cached_input));
    if model.kind == ModelKind::Chat {
        let _ = write!(text, ", {} out", per_million(rates.output));
    }
    if rates.cache_write != rates.input {
        let _ = write!(text, ", {} cache write", per_million(rates.cache_write));
    }
    if let Some(long) = model.price.standard.long {
        let (input, output) = (per_million(long.rates.input), per_million(long.rates.output));
        let _ = write!(text, "; above {} tokens {input} in, {output} out", long.above);
    }
    for (name, tier) in &model.price.services {
        let (input, output) = (per_million(tier.rates.input), per_million(tier.rates.output));
        let _ = write!(text, "; {name} {input} in, {output} out");
    }
    if let Some(percent) = model.price.batch_percent {
        let _ = write!(text, "; batches {percent} %");
    }
    text
}

fn tell(args: &PricesUpdateArgs, to: &std::path::Path, read: &LiteLlmTable, changes: &Changes<'_>) {
    if args.json {
        let changed = changes
            .changed
            .iter()
            .map(|(name, before, after)| json!({ "model": name, "before": shown(before), "after": shown(after) }));
        let new = changes.new.iter().map(|(name, model)| json!({ "model": name, "after": shown(model) }));
        let left_out = read.left_out.iter().map(|(name, why)| json!({ "model": name, "why": why }));
        out::json(&json!({
            "changed": changed.collect::<Vec<_>>(), "new": new.collect::<Vec<_>>(), "same": changes.same,
            "left_out": left_out.collect::<Vec<_>>(), "absent": read.absent, "written": args.yes.then(|| to.display().to_string()),
        }));
        return;
    }
    let mut lines = vec!["dollars per million tokens".to_owned()];
    let more = |lines: &mut Vec<String>, all: usize| {
        if all > MOST_SHOWN {
            lines.push(format!("  and {} more; --json has all", all - MOST_SHOWN));
        }
    };
    lines.push(format!("{} changed", changes.changed.len()));
    for (name, before, after) in changes.changed.iter().take(MOST_SHOWN) {
        lines.extend([format!("  {name}"), format!("    - {}", shown(before)), format!("    + {}", shown(after))]);
    }
    more(&mut lines, changes.changed.len());
    lines.push(format!("{} new", changes.new.len()));
    lines.extend(changes.new.iter().take(MOST_SHOWN).map(|(name, model)| format!("  {name}: {}", shown(model))));
    more(&mut lines, changes.new.len());
    lines.push(format!("{} the same", changes.same));
    if !read.left_out.is_empty() {
        lines.push(format!("{} left out", read.left_out.len()));
        lines.extend(read.left_out.iter().take(MOST_SHOWN).map(|(name, why)| format!("  {name}: {why}")));
        more(&mut lines, read.left_out.len());
    }
    out::result(&lines.join("\n"));
    if !read.absent.is_empty() {
        out::note(&format!("it has no model of {}: their prices stay as they were", read.absent.join(", ")));
    }
    let place = to.display();
    if args.yes {
        out::note(&format!(
            "written to {place}; use it with --set models.price_file={place}, or in bench.toml: [models] price_file = \"{place}\". Stored runs keep their prices."
        ));
    } else {
        out::note(&format!("nothing is written yet: --yes writes {place}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_table_is_said_without_its_password() {
        let said = refused("https://u:s3cret@prices.example/t.json?key=s3cret", "no object of models").message;
        assert_eq!(said, "--from https://***@prices.example/t.json?key=***: no object of models");
        assert_eq!(refused("table.json", "it is empty").message, "--from table.json: it is empty");
    }

    #[tokio::test]
    async fn a_table_that_comes_byte_by_byte_is_given_up_and_a_dead_address_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let place = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let Ok((mut stream, _)) = listener.accept() else { return };
            // an answer to nothing would be a mistake of another kind
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n");
            while stream.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let from = format!("http://u:s3cret@{place}/t.json");
        let slow = table_text(&[], &from, Duration::from_millis(300)).await.expect_err("is given up").message;
        let shown = format!("--from http://***@{place}/t.json: ");
        assert!(slow.starts_with(&shown) && slow.contains("it does not come in time: check the address"), "{slow}");
        let gone = std::net::TcpListener::bind("127.0.0.1:0").and_then(|gone| gone.local_addr()).expect("an address");
        let dead = table_text(&[], &format!("http://{gone}/t.json"), PATIENCE).await.expect_err("nobody is there");
        let said = format!("--from http://{gone}/t.json: ");
        assert!(dead.message.starts_with(&said) && dead.message.contains("save the table"), "{}", dead.message);
    }

    #[test]
    fn a_version_that_loses_its_own_price_is_shown_as_changed() {
        let read = |models: &str| {
            let file = format!(r#"{{"version":3,"date":"2030-01-01","models":[{models}]}}"#);
            PriceTable::read(&file).expect("is a price file")
        };
        let own = read(
            r#"{"model":"m","input":"1","output":"1"},{"model":"m-2029-01-01","input":"9","output":"9"},
            {"model":"m-2029-02-02","input":"1","output":"1"},{"model":"other","input":"5","output":"5"},
            {"model":"r/m","input":"3","output":"3"}"#,
        );
        let table = read(r#"{"model":"m","input":"1","output":"1"},{"model":"gpt-4o","input":"2","output":"2"}"#);
        let Changes { new, changed, same } = Changes::between(Some(&own), &table);
        let inputs = |of: &PricedModel| per_million(of.price.standard.rates.input);
        let changed: Vec<_> =
            changed.iter().map(|(name, before, after)| (*name, inputs(before), inputs(after))).collect();
        let change = |name, before: &str, after: &str| (name, before.to_owned(), after.to_owned());
        let expected =
            [change("gpt-4o", "2.5", "2"), change("gpt-4o-2024-05-13", "5", "2"), change("m-2029-01-01", "9", "1")];
        assert_eq!((changed.as_slice(), new.len(), same), (&expected[..], 0, 1));
    }
}
