//! `report RUN --published`: what others have published on the same dataset, beside the run, and in what each differs from it.

use bench_datasets::{PublishedResult, published};
use bench_grading::counting;
use bench_proto::{facts::judge_metric, profile::Part, summary::Summary};
use bench_report::{
    grades_were_brought,
    published::{NOT_SAID, PublishedRow, PublishedTable},
};

/// The run among the published results of its dataset, each part of it by itself and the best first.
#[must_use]
pub(crate) fn among_others(summary: &Summary) -> PublishedTable {
    let rows = published(&summary.dataset.name);
    let mut results: Vec<PublishedRow> = rows.iter().map(|row| theirs(row, summary)).collect();
    let mut wanted: Vec<Part> = Vec::new();
    for row in rows.iter().filter(|row| row.part.is_none()) {
        let part = Part { without: row.without.clone() };
        if !wanted.contains(&part) {
            wanted.push(part);
        }
    }
    results.extend(wanted.iter().filter_map(|part| ours(summary, part)));
    results.sort_by(|a, b| a.part.cmp(&b.part).then(b.score.total_cmp(&a.score)));
    PublishedTable { dataset: summary.dataset.name.clone(), results }
}

/// The run's figure over the same categories, as far as it has one: that by somebody else's counting where it is held to one.
fn ours(summary: &Summary, part: &Part) -> Option<PublishedRow> {
    let (headline, counted) = (&summary.headline, summary.counting.as_ref());
    let (score, ci95, questions) = match counted {
        // it is about the categories of the headline alone, and has no interval of ours
        Some(counted) => (counted.value.filter(|_| is_over(summary, part))?, None, counted.n),
        None if is_over(summary, part) => (headline.value?, headline.ci95.clone(), headline.n),
        None => {
            let totals = summary.all_totals();
            let (_, total) = totals.into_iter().find(|(of, _)| of == part)?;
            (total.value?, total.ci95.clone(), total.n)
        }
    };
    Some(PublishedRow {
        is_this_run: true,
        system: summary.spec.system.clone(),
        part: None,
        score,
        metric: Some(metric_of(summary).to_owned()),
        counted_as: counted.map(|counted| counted.counting.name.clone()),
        ci95,
        questions: Some(questions),
        answerer: summary.spec.known_answerer(),
        judge: summary.spec.judge.clone(),
        k: summary.spec.known_top_k().filter(|_| recalls(summary)),
        runs: repeats(summary),
        votes: summary.spec.votes,
        rubric: summary.spec.judge.as_ref().map(|_| rubric_of(summary).to_owned()),
        note: None,
        source: summary.run.id.clone(),
        differs_in: Vec::new(),
    })
}

/// The metric of the run's figure.
fn metric_of(summary: &Summary) -> &str {
    summary.counting.as_ref().map_or(&summary.headline.metric, |counted| &counted.counting.metric)
}

/// Whether its hits are as many as it asks for: `full-context` has all there is, and `none` nothing.
fn recalls(summary: &Summary) -> bool {
    !["full-context", "none"].contains(&summary.spec.system.as_str())
}

/// Runs that its figure is of: what was made elsewhere may be a mean of several.
fn repeats(summary: &Summary) -> Option<u32> {
    (!summary.spec.is_imported()).then_some(1)
}

/// What the judge of the run goes by, in the words of published results.
fn rubric_of(summary: &Summary) -> &str {
    let Some(counted) = &summary.counting else { return summary.spec.rubric.as_deref().unwrap_or("strict") };
    match counting::find(&counted.counting.name) {
        Some(counting) if counting.is_generous() => "generous",
        Some(counting) if counting.is_in_authors_words() => "official",
        _ => &counted.counting.name,
    }
}

/// Whether a metric is what others publish: the share of answers that a judge takes for right, or of right choices where a dataset
/// has options. Shares of words and of evidence are other figures of the same answers.
fn is_published(metric: &str) -> bool {
    metric == judge_metric(0) || metric.starts_with("choice")
}

/// Whether the headline is about the categories of a part: what the part leaves out was not asked, or is left out of the headline too.
fn is_over(summary: &Summary, part: &Part) -> bool {
    let left_out = &summary.headline.without;
    let asked = summary.scores.first().map(|score| &score.by_category[..]).unwrap_or_default();
    let counts = |category: &String| asked.iter().any(|of| of.category == *category) && !left_out.contains(category);
    left_out.iter().all(|category| part.without.contains(category)) && !part.without.iter().any(counts)
}

/// A published result, and in what it differs from the run.
fn theirs(row: &PublishedResult, summary: &Summary) -> PublishedRow {
    let part = Part { without: row.without.clone() };
    let asked = ours(summary, &part).and_then(|ours| ours.questions);
    let mut differs_in = Vec::new();
    if row.part.is_some() {
        differs_in.push("part".to_owned());
    }
    // grades that came with their answers are of a judge, and by a metric, that nobody names
    let brought = grades_were_brought(summary);
    if !is_published(metric_of(summary)) {
        differs_in.push(if brought { format!("metric{NOT_SAID}") } else { "metric".to_owned() });
    }
    let (answerer, judge) = (summary.spec.known_answerer(), summary.spec.judge.as_deref());
    differs_in.extend(match &answerer {
        Some(answerer) => models("answerer", row.answerer.as_deref(), Some(answerer.as_str())),
        None => Some(format!("answerer{NOT_SAID}")),
    });
    differs_in.extend(match brought {
        true => Some(format!("judge{NOT_SAID}")),
        false => models("judge", row.judge.as_deref(), judge),
    });
    differs_in.extend(match (row.questions, asked) {
        (None, _) => Some(format!("questions{NOT_SAID}")),
        (Some(theirs), Some(ours)) if theirs == ours => None,
        (Some(_), _) => Some("questions".to_owned()),
    });
    if recalls(summary) && !row.without_recall {
        differs_in.extend(held_against("k", row.k, summary.spec.known_top_k()));
    }
    differs_in.extend(held_against("repeats", row.runs, repeats(summary)));
    // who does not name a judge says nothing of its votes and rubric, and without one of ours there is nothing to hold them against
    if let (Some(_), Some(votes)) = (&row.judge, summary.spec.votes) {
        differs_in.extend(other("votes", row.votes, votes));
        differs_in.extend(other("rubric", row.rubric.as_deref(), rubric_of(summary)));
    }
    PublishedRow {
        is_this_run: false,
        system: row.system.clone(),
        part: row.part.clone(),
        score: row.score,
        metric: None,
        counted_as: None,
        ci95: None,
        questions: row.questions,
        answerer: row.answerer.clone(),
        judge: row.judge.clone(),
        k: row.k,
        runs: row.runs,
        votes: row.votes,
        rubric: row.rubric.clone(),
        note: row.note.clone(),
        source: row.source.clone(),
        differs_in,
    }
}

/// Whether they had another number or name of something, or do not say.
fn other<T: PartialEq>(what: &str, theirs: Option<T>, ours: T) -> Option<String> {
    match theirs {
        None => Some(format!("{what}{NOT_SAID}")),
        Some(theirs) => (theirs != ours).then(|| what.to_owned()),
    }
}

/// The same where ours may not be known either.
fn held_against<T: PartialEq>(what: &str, theirs: Option<T>, ours: Option<T>) -> Option<String> {
    match ours {
        Some(ours) => other(what, theirs, ours),
        None => Some(format!("{what}{NOT_SAID}")),
    }
}

/// Whether they had another model in a role: its name has to be among their words. One of several that they name may be another.
fn models(role: &str, theirs: Option<&str>, ours: Option<&str>) -> Option<String> {
    let Some(theirs) = theirs else { return Some(format!("{role}{NOT_SAID}")) };
    // `openai:gpt-4o-mini` is `gpt-4o-mini` to everybody else
    let name = ours.map(|ours| ours.rsplit(':').next().unwrap_or(ours));
    let is_same = name.is_some_and(|name| theirs.split([' ', ',']).any(|word| word == name));
    match (is_same, theirs.contains(" or ")) {
        (true, false) => None,
        (true, true) => Some(format!("{role} (one of several)")),
        (false, _) => Some(role.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use bench_proto::counting::{CountingSpec, CountingSummary};

    use super::*;

    /// A run of LoCoMo without its category of traps, by a metric.
    fn summary(metric: &str) -> Summary {
        let mut summary: Summary =
            serde_json::from_str(include_str!("../../../proto/golden/report.v4.json")).expect("a report");
        summary.headline.without = vec!["adversarial".to_owned()];
        (summary.headline.metric, summary.headline.value) = (metric.to_owned(), Some(0.25));
        summary
    }

    fn counted_as(name: &str) -> CountingSummary {
        CountingSummary {
            counting: CountingSpec { name: name.to_owned(), metric: "judge".to_owned(), ..CountingSpec::default() },
            value: Some(0.625),
            sd: None,
            runs: 1,
            n: 1_540,
            failed: 0,
            left_out: 446,
            by_category: Vec::new(),
        }
    }

    /// The run's own row, and how many of the others differ in their metric.
    fn told(summary: &Summary) -> (PublishedRow, usize) {
        let (mut own, others): (Vec<PublishedRow>, Vec<PublishedRow>) =
            among_others(summary).results.into_iter().partition(|row| row.is_this_run);
        assert!(own.len() == 1 && others.len() > 5, "{own:?}");
        let other_metric = |row: &&PublishedRow| row.differs_in.iter().any(|word| word == "metric");
        let differ = others.iter().filter(other_metric).count();
        assert!(differ == 0 || differ == others.len(), "all of them or none");
        (own.remove(0), differ)
    }

    #[test]
    fn a_figure_that_no_judge_gave_differs_in_its_metric() {
        let (own, differ) = told(&summary("judge"));
        assert_eq!((own.metric.as_deref(), own.counted_as.as_deref(), own.score), (Some("judge"), None, 0.25));
        assert_eq!(differ, 0);
        for metric in ["locomo-f1", "recall@10", "judge.hallucination"] {
            let (own, differ) = told(&summary(metric));
            assert!(own.metric.as_deref() == Some(metric) && differ > 0, "{own:?}");
        }
        assert!(is_published("choice-letter"));
    }

    #[test]
    fn a_run_that_is_counted_as_others_do_stands_there_with_that_figure() {
        let mut summary = summary("judge");
        summary.counting = Some(counted_as("mem0-2025"));
        let (own, differ) = told(&summary);
        assert_eq!((own.score, own.ci95, own.questions), (0.625, None, Some(1_540)));
        assert_eq!((own.counted_as.as_deref(), differ), (Some("mem0-2025"), 0));
    }

    #[test]
    fn unlike_k_repeats_votes_and_rubric_are_differences_and_so_is_what_is_not_said() {
        let differs = |summary: &Summary, system: &str| {
            let rows = among_others(summary).results;
            let row = rows.into_iter().find(|row| row.system == system && row.judge.is_some()).expect("is published");
            row.differs_in
        };
        let mut summary = summary("judge");
        summary.spec.top_k = 1;
        summary.spec.answerer = "openai:gpt-4o-mini".to_owned();
        let zep = "Zep Dec 2025, edges 20 nodes 20";
        for (system, words) in [
            ("EverMemOS", &["answerer (one of several)", "k not said", "repeats not said", "votes", "rubric"][..]),
            (zep, &["k", "repeats", "rubric"][..]),
            ("Full context, gpt-4o-mini, CoT prompt", &["repeats not said", "votes", "rubric"][..]),
        ] {
            let found = differs(&summary, system);
            assert!(words.iter().all(|word| found.iter().any(|of| of == word)), "{system}: {found:?}");
        }
        let without_k = differs(&summary, "Full context, gpt-4o-mini, CoT prompt");
        assert!(!without_k.iter().any(|of| of.starts_with('k')), "nothing is recalled there: {without_k:?}");
        let all = among_others(&summary).results;
        let silent: Vec<_> = all.iter().filter(|row| !row.is_this_run && row.differs_in.is_empty()).collect();
        assert!(silent.is_empty(), "no published result is made as this run is: {silent:?}");
        let own = all.iter().find(|row| row.is_this_run).expect("is there");
        assert_eq!((own.k, own.runs, own.votes, own.rubric.as_deref()), (Some(1), Some(1), Some(1), Some("strict")));
        // held to their counting, and with as many hits, nothing but the repeats is left
        summary.spec.top_k = 40;
        summary.counting = Some(counted_as("zep"));
        let found = differs(&summary, zep);
        assert!(found.iter().any(|of| of == "repeats"), "{found:?}");
        assert!(!found.iter().any(|of| of == "rubric" || of == "k" || of.starts_with("votes")), "{found:?}");
    }

    #[test]
    fn of_answers_from_elsewhere_nothing_is_said_that_they_do_not_say() {
        let mut summary = summary("imported");
        (summary.spec.system_version, summary.spec.answerer) = ("imported".to_owned(), "none".to_owned());
        (summary.spec.judge, summary.spec.votes) = (None, None);
        summary.spec.judges.clear();
        let all = among_others(&summary).results;
        let own = all.iter().find(|row| row.is_this_run).expect("is there");
        assert_eq!((&own.answerer, &own.judge, own.k, own.runs), (&None, &None, None, None));
        for row in all.iter().filter(|row| !row.is_this_run) {
            for what in ["metric", "answerer", "judge", "k", "repeats"] {
                assert!(!row.differs_in.iter().any(|word| word == what), "{what} is not known: {row:?}");
            }
            assert!(row.differs_in.iter().any(|word| word == "judge not said"), "{row:?}");
        }
    }

    #[test]
    fn a_model_is_the_same_by_its_name_alone() {
        assert_eq!(
            models("answerer", Some("gpt-4.1-mini or gpt-4o-mini"), Some("openai:gpt-4o")),
            Some("answerer".to_owned())
        );
        let one_of = models("answerer", Some("gpt-4.1-mini or gpt-4o-mini"), Some("openai:gpt-4o-mini"));
        assert_eq!(one_of.as_deref(), Some("answerer (one of several)"));
        assert_eq!(models("judge", Some("gpt-4o-mini x3, generous"), Some("openai:gpt-4o-mini")), None);
        assert_eq!(models("judge", Some("gpt-4o-mini x3"), Some("openai:gpt-4o")), Some("judge".to_owned()));
        assert_eq!(models("judge", None, Some("openai:gpt-4o")), Some("judge not said".to_owned()));
        assert_eq!(models("judge", Some("gpt-4o"), None), Some("judge".to_owned()));
    }
}
