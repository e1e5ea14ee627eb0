//! Who is told how a gate ended: the screen, the files of a CI system, and whoever wants alerts.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use bench_proto::gate::GateReport;
use bench_report::gate as view;

use crate::{cli::GateArgs, exit::CliError, out, results};

pub(super) fn show(args: &GateArgs, report: &GateReport) -> Result<(), CliError> {
    if let Some(path) = &args.junit {
        let xml = view::junit(report).map_err(CliError::infrastructure_of)?;
        results::write_named(path, &xml)?;
    }
    if args.json {
        out::json(report);
    } else {
        out::painted(&view::terminal(report, out::view()));
    }
    // https://docs.github.com/actions: a summary is a file, annotations are lines of the log
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY") {
        let appended = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(view::markdown(report).as_bytes()));
        if let Err(error) = appended {
            out::note(&format!("the step summary cannot be written: {error}"));
        }
    }
    if out::on_github() {
        view::annotations(report).iter().for_each(|line| out::command(line));
    }
    Ok(())
}

/// Tells whoever wants to hear; a deaf ear never changes the gate.
pub(super) async fn alert(args: &GateArgs, report: &GateReport) {
    let Some(severity) = report.severity.as_deref() else { return };
    let message = serde_json::json!({
        "severity": severity, "run": report.run, "baseline": report.baseline, "verdict": report.verdict,
        "exit_code": report.exit_code, "reasons": report.reasons, "checks": report.checks,
    })
    .to_string();
    if let Some(command) = &args.alert_command
        && let Err(error) = run_command(command, severity, &message)
    {
        out::note(&format!("the alert command failed: {error}"));
    }
    if let Some(url) = &args.alert_url
        && let Err(error) = post(url, message).await
    {
        out::note(&format!("the alert was not delivered: {error}"));
    }
}

fn run_command(command: &str, severity: &str, message: &str) -> std::io::Result<()> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .env("BENCH_ALERT_SEVERITY", severity)
        .stdin(Stdio::piped())
        // standard output is the gate's own
        .stdout(std::io::stderr())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // a command that reads nothing is fine
        let _ = stdin.write_all(message.as_bytes());
    }
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(std::io::Error::other(status.to_string())) }
}

async fn post(url: &str, message: String) -> Result<(), String> {
    // a redirection may lead off the encrypted way, and takes the message along
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let client = client.timeout(std::time::Duration::from_secs(10)).build().map_err(|e| e.to_string())?;
    let sent = client.post(url).header("content-type", "application/json").body(message).send().await;
    // the URL may hold a secret: it is not repeated
    let sent = sent.and_then(reqwest::Response::error_for_status).map_err(|e| e.without_url().to_string())?;
    let status = sent.status();
    match status.is_redirection() {
        true => Err(format!("the server leads elsewhere ({status}), give the URL of that place")),
        false => Ok(()),
    }
}
