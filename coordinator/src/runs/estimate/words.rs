//! The words of an estimate: a line at the start of a run, and all of it for `estimate` and `--dry-run`.

use bench_plan::{Announcement, Estimate};
use bench_proto::money::PicoUsd;
use serde_json::{Value, json};

use super::RunEstimate;
use crate::{
    exit::{CliResult, Exit},
    out::{
        self,
        amounts::{dollars, duration},
    },
};

impl RunEstimate {
    /// What it is of beside the run, to be put behind an amount; empty for a run alone.
    #[must_use]
    pub(crate) fn what(&self) -> String {
        if self.cells > 1 {
            return format!(" of {} cells", self.cells);
        }
        let repeats = if self.repeats > 1 { format!(" of {} repeats", self.repeats) } else { String::new() };
        match self.controls.len() {
            0 => repeats,
            1 => format!("{repeats} with its control"),
            n => format!("{repeats} with its {n} controls"),
        }
    }

    /// What canaries ask of the memory system, which may cost something where a recall does.
    fn canaries(&self) -> Option<String> {
        (self.canary_recalls > 0).then(|| {
            format!(
                "canaries: up to {} recalls of the memory system beside those of the questions",
                self.canary_recalls
            )
        })
    }

    /// What comes on top of all amounts, where a memory system is metered.
    pub(crate) fn metered_beside(&self) -> Option<&'static str> {
        self.is_metered.then_some(
            "what the memory system calls itself is metered under the same cap, and no part of this estimate",
        )
    }

    /// What is not paid again.
    fn stored(&self) -> Option<String> {
        let stored = self.total.stored_calls;
        (stored > 0).then(|| format!("{stored} further calls of judges are stored and are not paid again"))
    }

    /// Says of prices that they were read long ago, where something is paid by them.
    pub(crate) fn tell_old_prices(&self) {
        self.old_prices().for_each(out::note);
    }

    fn old_prices(&self) -> impl Iterator<Item = &str> {
        self.old_prices.iter().filter(|_| self.total.most_calls > 0 || self.is_metered).map(String::as_str)
    }

    /// One or two lines for the start of a run.
    #[must_use]
    pub(crate) fn line(&self) -> String {
        let stored = self.stored().map(|stored| format!("{stored}; ")).unwrap_or_default();
        let interval = format!(
            "{stored}expected 95 % interval {}; a paired comparison can detect {} points",
            self.half_width(),
            self.detectable()
        );
        let total = &self.total;
        if total.most_calls == 0 && self.is_metered {
            return format!("what the memory system calls itself is not known beforehand; {interval}");
        }
        if total.most_calls == 0 {
            return interval;
        }
        format!(
            "estimate{}: {}{}, {} prompt and {} completion tokens, {} (worst {}){}, {}{}; {interval}",
            self.what(),
            match (self.at_most, self.is_rough) {
                (true, true) => "at most about ",
                (true, false) => "at most ",
                (false, true) => "about ",
                (false, false) => "",
            },
            number_of_calls((total.calls, total.most_calls)),
            total.prompt_tokens,
            total.completion_tokens,
            total.expected,
            total.worst,
            self.cap_usd.map(|cap| format!(", cap {}", dollars(cap))).unwrap_or_default(),
            duration(total.minutes * 60.0),
            if self.is_metered { ", and what the memory system calls itself" } else { "" },
        )
    }

    /// Half of the interval to expect; of several cells the least and the most.
    fn half_width(&self) -> String {
        let all: Vec<&Announcement> = self.announcements().collect();
        let naive = range(all.iter().map(|of| of.naive_points));
        let clustered: Vec<[f64; 2]> = all.iter().filter_map(|of| of.clustered_points).map(<[f64; 2]>::from).collect();
        match (all.len(), clustered.len()) {
            (cells, with) if cells == with => format!(
                "± {} points for conversations like these (other ones of their kind), by {}how high the score is (± {naive} naive)",
                range(clustered.into_iter().flatten()),
                if cells > 1 { "cell and by " } else { "" }
            ),
            (1, _) => format!("± {naive} points naive; fewer than three banks give no clustered interval"),
            _ => format!(
                "± {naive} points naive, by cell; cells with fewer than three banks have no interval for conversations like these \
                 (other ones of their kind)"
            ),
        }
    }

    /// The difference that a paired comparison finds, in points; of several cells the least and the most.
    fn detectable(&self) -> String {
        range(self.announcements().map(|of| of.detectable_points))
    }

    /// Prints all of it.
    ///
    /// # Errors
    /// Never; the type is the verbs'.
    pub(crate) fn print(&self, as_json: bool) -> CliResult {
        if as_json {
            out::json(&self.json())
        } else {
            out::words(&self.text())
        }
        Ok(Exit::Done)
    }

    /// Calls, tokens, dollars and minutes of all runs, as JSON.
    #[must_use]
    pub(crate) fn totals(&self) -> Value {
        let mut all = totals(&self.total);
        // a reader of the JSON has no line that says so
        all["metered"] = json!(self.is_metered);
        all
    }

    fn json(&self) -> Value {
        let phases: Vec<_> = self
            .total
            .phases
            .iter()
            .map(|p| {
                json!({
                    "phase": p.phase, "calls": p.calls, "most_calls": p.most_calls, "prompt_tokens": p.prompt_tokens,
                    "completion_tokens": p.completion_tokens, "minutes": p.minutes,
                    "usd": {"low": p.low.usd(), "expected": p.expected.usd(), "worst": p.worst.usd()},
                })
            })
            .collect();
        let mut all = self.totals();
        all["questions"] = json!(self.questions);
        all["usd_cap"] = json!(self.cap_usd);
        all["canary_recalls"] = json!(self.canary_recalls);
        all["stored_calls"] = json!(self.total.stored_calls);
        all["old_prices"] = json!(self.old_prices().collect::<Vec<_>>());
        all["phases"] = json!(phases);
        all["interval"] = json!(self.announcement);
        if self.repeats > 1 {
            all["repeats"] = json!(self.repeats);
        }
        if !self.samples.is_empty() {
            all["judged_samples"] = json!(self.samples);
        }
        all["measured"] = totals(&self.estimate);
        all["controls"] = self.controls.iter().map(|(name, e)| (name.clone(), totals(e))).collect();
        all
    }

    fn text(&self) -> String {
        let mut lines = vec![format!("{} questions", self.questions)];
        for p in &self.estimate.phases {
            let of = calls((p.calls, p.most_calls), p.prompt_tokens, p.completion_tokens, [p.low, p.expected, p.worst]);
            lines.push(format!("  {:<7} {of}", p.phase.name()));
        }
        let of = |e: &Estimate| {
            calls((e.calls, e.most_calls), e.prompt_tokens, e.completion_tokens, [e.low, e.expected, e.worst])
        };
        for (name, estimate) in &self.controls {
            lines.push(format!("  control {name}: {}", of(estimate)));
        }
        if self.total.most_calls == 0 && !self.is_metered {
            lines.push("  no model calls: free".to_owned());
        } else {
            let cap = self.cap_usd.map(|cap| format!(" (cap {})", dollars(cap))).unwrap_or_default();
            lines.push(format!("  total{}: {}{cap}", self.what(), of(&self.total)));
        }
        lines.extend(self.stored().map(|stored| format!("  {stored}")));
        if self.at_most {
            lines.push(
                "  at most: replies that are stored are not paid again, and which are is not known here".to_owned(),
            );
        }
        lines.extend(self.metered_beside().map(|beside| format!("  {beside}")));
        let is_alone = self.repeats == 1 && self.cells == 1 && self.controls.is_empty();
        let of_run = if is_alone { "" } else { "in each run, " };
        lines.extend(self.samples.iter().map(|sample| format!("  {of_run}{}", sample.words())));
        lines.extend(self.canaries().map(|canaries| format!("  {canaries}")));
        lines.extend(self.old_prices().map(|line| format!("  {line}")));
        lines.push(format!("  about {}", duration(self.total.minutes * 60.0)));
        lines.push(format!("  95 % interval to expect: {}", self.half_width()));
        lines.push(format!("  smallest difference a paired comparison finds: {} points", self.detectable()));
        lines.join("\n")
    }
}

/// What a run needs as JSON.
fn totals(e: &Estimate) -> Value {
    json!({
        "calls": e.calls,
        "most_calls": e.most_calls,
        "prompt_tokens": e.prompt_tokens,
        "completion_tokens": e.completion_tokens,
        "usd": {"low": e.low.usd(), "expected": e.expected.usd(), "worst": e.worst.usd()},
        "minutes": e.minutes,
    })
}

/// Calls that are expected, and the most where there can be more.
fn number_of_calls((calls, most): (u64, u64)) -> String {
    let most = if most > calls { format!(" (at most {most})") } else { String::new() };
    format!("{calls} calls{most}")
}

/// What a phase or a run needs in words; `usd`: low, expected, worst.
fn calls(calls: (u64, u64), prompt: u64, completion: u64, usd: [PicoUsd; 3]) -> String {
    let [low, expected, worst] = usd;
    format!(
        "{}, {prompt} prompt and {completion} completion tokens, {low} to {worst}, expected {expected}",
        number_of_calls(calls)
    )
}

/// `3.1`, or `3.1 to 9.6`: the least and the most of some points.
fn range(points: impl Iterator<Item = f64>) -> String {
    let (least, most) =
        points.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), of| (of.min(least), of.max(most)));
    let (least, most) = (format!("{least:.1}"), format!("{most:.1}"));
    if least == most { most } else { format!("{least} to {most}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate of a run without calls, of which this is expected.
    fn expecting(naive_points: f64, clustered_points: Option<(f64, f64)>, detectable_points: f64) -> RunEstimate {
        let announcement = Announcement {
            n: 50,
            banks: 10,
            naive_points,
            weighted: None,
            clustered_points,
            detectable_points,
            by_facet: Vec::new(),
        };
        RunEstimate {
            estimate: Estimate::default(),
            controls: Vec::new(),
            repeats: 1,
            cells: 1,
            total: Estimate::default(),
            announcement,
            of_other_cells: Vec::new(),
            questions: 50,
            canary_recalls: 0,
            is_metered: false,
            cap_usd: None,
            old_prices: Vec::new(),
            is_rough: false,
            at_most: false,
            samples: Vec::new(),
        }
    }

    #[test]
    fn a_price_that_was_read_long_ago_stands_in_the_text_where_it_is_paid() {
        let mut of_run = expecting(13.9, None, 18.0);
        of_run.old_prices.push("the price of m is of 2020-01-01".to_owned());
        assert!(!of_run.text().contains("the price of m"), "nothing is paid by it");
        of_run.total.most_calls = 1;
        assert!(of_run.text().contains("\n  the price of m is of 2020-01-01\n"), "{}", of_run.text());
    }

    #[test]
    fn p34_a_matrix_with_a_metered_cell_says_that_its_calls_come_on_top() {
        let mut matrix = expecting(13.9, None, 18.0);
        assert_eq!((matrix.metered_beside(), &matrix.totals()["metered"]), (None, &json!(false)));
        matrix.and(&RunEstimate { is_metered: true, ..expecting(13.9, None, 18.0) });
        let beside = matrix.metered_beside().expect("a cell is metered");
        assert_eq!((&matrix.totals()["metered"], &matrix.json()["metered"]), (&json!(true), &json!(true)));
        assert!(
            beside.contains("under the same cap") && matrix.text().contains(&format!("\n  {beside}\n")),
            "{beside}"
        );
    }

    #[test]
    fn a_matrix_announces_the_intervals_of_all_of_its_cells() {
        let small = expecting(13.9, Some((10.0, 17.5)), 18.0);
        let large = expecting(6.9, Some((5.0, 8.5)), 9.0);
        let one = "expected 95 % interval ± 10.0 to 17.5 points for conversations like these (other ones of their kind), by how high \
                   the score is (± 13.9 naive); a paired comparison can detect 18.0 points";
        assert_eq!(small.line(), one);
        let mut alike = small.clone();
        alike.and(&small);
        assert_eq!(alike.line(), one, "cells of one sample expect the same");
        let mut matrix = small.clone();
        matrix.and(&large);
        matrix.and(&large);
        assert_eq!(
            matrix.line(),
            "expected 95 % interval ± 5.0 to 17.5 points for conversations like these (other ones of their kind), by cell and by how \
             high the score is (± 6.9 to 13.9 naive); a paired comparison can detect 9.0 to 18.0 points"
        );
        let two_banks = expecting(20.0, None, 30.0);
        assert!(two_banks.line().contains("± 20.0 points naive; fewer than three banks"), "{}", two_banks.line());
        matrix.and(&two_banks);
        assert!(matrix.line().contains("± 6.9 to 20.0 points naive, by cell"), "{}", matrix.line());
    }
}
