//! `load`: a memory system under load or in a suite, or the results of several processes that have loaded it together.

use serde_json::{Value, json};

use crate::{
    app::App,
    cli::LoadArgs,
    exit::{CliError, CliResult, Exit},
    load::{self, Baseline, Gate, Measured},
    out,
    results::check_writable,
};

/// Measures, or reads what was measured; writes the files, prints the table and what a gate says. Exit 3 when it was interrupted, 4
/// when nothing was served or a failure has ended it before its time, 5 when a bank answered with what is in another or the baseline is of
/// other conditions, 1 and 6 as a gate.
pub(super) async fn run(app: &App, args: &LoadArgs) -> CliResult {
    if !(args.ratio.is_finite() && args.ratio >= 1.0) {
        return Err(CliError::usage(format!("--ratio {}: give a number from 1", args.ratio)));
    }
    if let Some(folder) = &args.output_dir {
        check_writable(folder)?;
    }
    let baseline = Baseline::read(args)?;
    let measured = match &args.system {
        Some(given) => load::run(app, args, given).await?,
        None => load::read_all(&args.merge)?,
    };
    let folder = load::folder_of(app, &measured, args.output_dir.as_deref());
    // what one process has measured has its files already
    let is_new = args.system.is_some() || args.merge.len() > 1 || args.output_dir.is_some();
    let written = if is_new { load::write(&measured, &folder) } else { Ok(()) };
    let gate = load::gated(args, baseline.as_ref(), &measured);
    let shown = gate.as_ref().ok().and_then(Option::as_ref);
    if args.json {
        print_json(&measured, shown)?
    } else {
        load::show(&measured, shown)
    }
    written?;
    if is_new {
        out::note(&format!("files: {}", folder.display()));
    }
    exit_of(&measured, gate?.as_ref())
}

/// The result, with what a gate says as `gate`.
fn print_json(measured: &Measured, gate: Option<&Gate>) -> Result<(), CliError> {
    let mut value = serde_json::to_value(measured).map_err(CliError::infrastructure_of)?;
    if let (Value::Object(fields), Some(gate)) = (&mut value, gate) {
        fields.insert("gate".to_owned(), json!(gate));
    }
    out::json(&value);
    Ok(())
}

fn exit_of(measured: &Measured, gate: Option<&Gate>) -> CliResult {
    let operations = measured.operations();
    if measured.is_interrupted() {
        return Ok(Exit::Resumable);
    }
    if let Some(why) = measured.failure() {
        return Err(CliError::infrastructure(why));
    }
    if operations.iter().all(|of| of.figures.served == 0) {
        return Err(CliError::infrastructure(
            "not one operation was served; `bench-coord systems check SYSTEM` shows what works",
        ));
    }
    if operations.iter().any(|of| of.findings.is_some_and(|findings| findings.foreign > 0)) {
        return Ok(Exit::Invalid);
    }
    Ok(gate.map_or(Exit::Done, Gate::exit))
}
