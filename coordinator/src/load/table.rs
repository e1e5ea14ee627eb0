//! A load as a person reads it: a table that fits 80 columns, and a line for whatever the table does not say.

use bench_load::{
    gate::Check,
    line::Line,
    mix::Operation,
    result::{Findings, LoadResult, OperationResult, StepResult},
    saturation::Standing,
    stress::{BANKS, StressResult},
    tally::Tally,
};

use super::{files::Measured, gate::Gate};
use crate::out::{
    self,
    amounts::counted,
    tables::{render, table},
};

/// Columns of a line at most.
const WIDTH: usize = 80;

/// What a person reads: the same on a terminal and on the page.
pub(super) struct Sheet {
    pub(super) title: String,
    /// What was done.
    pub(super) facts: Vec<String>,
    /// What stands above the columns.
    pub(super) header: [&'static str; 9],
    pub(super) rows: Vec<[String; 9]>,
    /// What the table does not say.
    pub(super) notes: Vec<String>,
}

impl Sheet {
    pub(super) fn from_measured(measured: &Measured) -> Self {
        match measured {
            Measured::Load(result) => Self {
                title: format!("{} {} under load", result.plan.system, result.plan.system_version),
                facts: facts(result),
                header: ["bank", "rate", "", "served/s", "p50 ms", "p99 ms", "p99.9", "unserved", "step"],
                rows: rows(result),
                notes: notes(result),
            },
            Measured::Stress(result) => Self {
                title: format!("{} {} under stress", result.system, result.system_version),
                facts: vec![format!(
                    "{} retains over {BANKS} banks; recalls while they grow, for {:?} hits",
                    result.retain.figures.intended, result.widths
                )],
                header: ["at once", "", "n", "p50 ms", "p95 ms", "p99 ms", "found", "ms/1,000", "unserved"],
                rows: rows_of_stress(result),
                notes: notes_of_stress(result),
            },
        }
    }
}

/// Prints it, with what a gate says.
pub(crate) fn show(measured: &Measured, gate: Option<&Gate>) {
    let Sheet { title, facts, header, rows, notes } = Sheet::from_measured(measured);
    let mut shown = table(header);
    rows.into_iter().for_each(|row| shown.add_row(row));
    let width = out::view().width.map_or(WIDTH, |width| width.min(WIDTH));
    let head = std::iter::once(title).chain(facts).flat_map(|line| wrapped(&line, width));
    let body = [String::new(), render(&shown), String::new()];
    let notes = notes.iter().flat_map(|note| wrapped(note, width));
    out::result(&head.chain(body).chain(notes).collect::<Vec<_>>().join("\n"));
    if let Some(gate) = gate {
        let mut checks = table(["gate", "", ""]);
        for Check { what, seen, outcome } in &gate.checks {
            checks.add_row([outcome.name().to_owned(), what.clone(), seen.clone()]);
        }
        out::result(&format!("\n{}\ngate: {}", render(&checks), gate.outcome.name()));
    }
}

/// A note in lines of a width; those that go on are indented.
fn wrapped(note: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in note.split_whitespace() {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 2 && last + 1 + word.chars().count() > width {
            lines.push("  ".to_owned());
        }
        if let Some(line) = lines.last_mut() {
            if !line.trim().is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

fn rows_of_stress(result: &StressResult) -> Vec<[String; 9]> {
    let row = |at_once: String, name: &str, of: &OperationResult, slope: Option<Line>| {
        let (figures, latency) = (&of.figures, &of.figures.latency_ms);
        let share = of
            .findings
            .map(|findings| 100.0 * findings.found as f64 / (findings.found + findings.missed).max(1) as f64);
        [
            at_once,
            name.to_owned(),
            figures.intended.to_string(),
            percentile(latency.p50, 0.5, figures.intended),
            percentile(latency.p95, 0.95, figures.intended),
            percentile(latency.p99, 0.99, figures.intended),
            share.map(|share| format!("{share:.1} %")).unwrap_or_default(),
            slope.map(|line| format!("{:+.2}", line.slope)).unwrap_or_default(),
            (figures.intended - figures.served).to_string(),
        ]
    };
    let recalls =
        result.at_once.iter().map(|at| row(at.at_once.to_string(), "recall", &at.recall, at.ms_per_1000_memories));
    std::iter::once(row("4".to_owned(), "retain", &result.retain, None)).chain(recalls).collect()
}

fn notes_of_stress(result: &StressResult) -> Vec<String> {
    let slopes = result.at_once.iter().filter_map(|at| {
        let Line { slope, low, high, .. } = at.ms_per_1000_memories?;
        let n = at.at_once;
        Some(format!("{n} at once: the median takes {slope:+.2} ms more for 1,000 memories in a bank (95 % {low:+.2} to {high:+.2})"))
    });
    let widths = result.widths.iter().filter_map(|k| {
        let mut all = Findings::default();
        result.at_once.iter().filter_map(|at| at.found_by_width.get(k)).for_each(|found| all.add(*found));
        let n = all.found + all.missed;
        (n > 0).then(|| format!("{:.1} % for {k}", 100.0 * all.found as f64 / n as f64))
    });
    let widths = widths.collect::<Vec<_>>().join(", ");
    let found = (!widths.is_empty()).then(|| format!("found by the hits that were asked for: {widths}"));
    let duplicates = &result.duplicates;
    let once = duplicates.in_words();
    let all = duplicates.sent + duplicates.refused + duplicates.failed;
    let refused = if duplicates.refused > 0 { format!(" ({} refused)", duplicates.refused) } else { String::new() };
    let sent = (all > 0).then(|| {
        format!(
            "{all} memories sent again in bulk{refused}: {once}; of {} recalls {} had the memory once among their hits and {} more often",
            duplicates.asked, duplicates.seen_once, duplicates.seen_twice
        )
    });
    let stored = result.stored.map(|count| format!("stored: {} of {} items are there", count.found, count.expected));
    slopes.chain(found).chain(stored).chain(sent).chain(result.notes.iter().cloned()).collect()
}

/// What was done.
fn facts(result: &LoadResult) -> Vec<String> {
    let plan = &result.plan;
    let many = if result.processes.len() > 1 {
        format!("{} processes, each: ", result.processes.len())
    } else {
        String::new()
    };
    vec![format!(
        "{many}{} arrivals, {}, {}, k {}, {} s a step after {} s of warm-up",
        plan.arrivals,
        plan.mix,
        counted(u64::from(plan.banks), "bank"),
        plan.top_k,
        plan.seconds,
        plan.warm_up_seconds
    )]
}

/// A row for each step and operation.
fn rows(result: &LoadResult) -> Vec<[String; 9]> {
    let of_step = |step: &'_ StepResult| -> Vec<[String; 9]> {
        // what was held for a part of its time may not have been held for all of it
        let standing = if step.is_cut(result.plan.seconds) { "cut" } else { step.standing.name() };
        let of = |(at, (operation, of)): (usize, (&Operation, &OperationResult))| {
            let first = |text: String| if at == 0 { text } else { String::new() };
            let (figures, latency) = (&of.figures, &of.figures.latency_ms);
            [
                first(step.bank_size.to_string()),
                first(short(step.rate)),
                operation.name().to_owned(),
                short(figures.served_per_second),
                percentile(latency.p50, 0.5, figures.intended),
                percentile(latency.p99, 0.99, figures.intended),
                percentile(latency.p99_9, 0.999, figures.intended),
                (figures.intended - figures.served).to_string(),
                first(standing.to_owned()),
            ]
        };
        step.operations.iter().enumerate().map(of).collect()
    };
    result.steps.iter().flat_map(of_step).collect()
}

/// What the table does not say.
fn notes(result: &LoadResult) -> Vec<String> {
    let sizes = result.at_bank_sizes.iter().map(|at| {
        let saturation = &at.saturation;
        let where_it_is = match (saturation.held, saturation.behind) {
            (Some(held), Some(behind)) => format!("saturates between {} and {} a second", short(held), short(behind)),
            (None, Some(behind)) => format!("saturates below {} a second", short(behind)),
            (Some(held), None) => format!("held {} a second and more was not asked", short(held)),
            (None, None) => "no step was measured".to_owned(),
        };
        let knee = at.knee.map(|knee| format!("; knee at {} a second", short(knee))).unwrap_or_default();
        let served = short(saturation.most_served);
        format!("banks of {}: {where_it_is}; at most {served} a second were served{knee}", at.bank_size)
    });
    let growth = result.growth_of_banks.iter().map(|growth| {
        let Line { slope, low, high, .. } = growth.ms_per_1000_memories;
        let (rate, operation) = (short(growth.rate), growth.operation.name());
        format!("at {rate} a second the median {operation} takes {slope:.3} ms more for 1,000 memories (95 % {low:.3} to {high:.3})")
    });
    let errors = result.steps.iter().filter(|step| is_behind_by_errors(step)).map(|step| {
        format!(
            "at {} a second it is errors that were too many, and no latency that grew: a system that is away fails so at any rate, so that \
             this may be no saturation; try again",
            short(step.rate)
        )
    });
    let failures = result.steps.iter().flat_map(|step| {
        let rate = short(step.rate);
        let of = move |(operation, of): (&Operation, &OperationResult)| {
            let line = |(kind, failed): (&String, &bench_load::tally::Kind)| {
                format!(
                    "at {rate} a second {} of {} failed with {kind}: {}",
                    failed.n,
                    operation.name(),
                    failed.example
                )
            };
            of.tally.failed.iter().map(line).collect::<Vec<_>>()
        };
        step.operations.iter().flat_map(of).collect::<Vec<_>>()
    });
    let never =
        result.steps.iter().any(|step| step.operations.values().any(|of| of.figures.latency_ms.p99_9.is_none()));
    let never = never.then(|| "never: fewer operations than that were served".to_owned());
    sizes.chain(growth).chain(errors).chain(failures).chain(never).chain(result.notes.iter().cloned()).collect()
}

/// Whether a system was behind in a step because operations failed, and not because they took ever longer.
fn is_behind_by_errors(step: &StepResult) -> bool {
    let sum = |of: fn(&Tally) -> u64| step.operations.values().map(|operation| of(&operation.tally)).sum::<u64>();
    let (intended, unserved, errors) = (sum(Tally::intended), sum(Tally::unserved), sum(Tally::errors));
    step.standing == Standing::Behind
        && errors * 2 > unserved
        && Standing::from_step(intended, unserved - errors, step.growth) == Standing::Held
}

/// A percentile in milliseconds; a dash where none of so many operations lies beyond it, and it would be the largest under another name.
fn percentile(ms: Option<f64>, share: f64, intended: u64) -> String {
    match ms {
        // 1 - 0.999 is a little less than 0.001
        _ if intended as f64 * (1.0 - share) < 1.0 - 1e-9 => "-".to_owned(),
        Some(ms) => short(ms),
        None => "never".to_owned(),
    }
}

/// Three significant digits, without an exponent.
fn short(number: f64) -> String {
    match number.abs() {
        0.0 => "0".to_owned(),
        size if size < 1.0 => format!("{number:.3}"),
        size if size < 10.0 => format!("{number:.2}"),
        size if size < 100.0 => format!("{number:.1}"),
        _ => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_no_wider_than_the_terminal() {
        let note = "banks of 100: saturates between 200 and 400 a second; at most 390 a second were served";
        for width in [40, 60, 80] {
            let lines = wrapped(note, width);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
            assert_eq!(lines.join(" ").split_whitespace().collect::<Vec<_>>().join(" "), note);
        }
    }
}
