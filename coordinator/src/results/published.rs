//! `report RUN --published`: what others have published on the same dataset, beside the run, and in what each differs from it.

use bench_datasets::{PublishedResult, published};
use bench_proto::{profile::Part, summary::Summary};
use bench_report::published::{PublishedRow, PublishedTable};

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

/// The run's figure over the same categories, as far as it has one.
fn ours(summary: &Summary, part: &Part) -> Option<PublishedRow> {
    let headline = &summary.headline;
    let (score, ci95, questions) = if is_over(summary, part) {
        (headline.value?, headline.ci95.clone(), headline.n)
    } else {
        let totals = summary.all_totals();
        let (_, total) = totals.into_iter().find(|(of, _)| of == part)?;
        (total.value?, total.ci95.clone(), total.n)
    };
    Some(PublishedRow {
        is_this_run: true,
        system: summary.spec.system.clone(),
        part: None,
        score,
        ci95,
        questions: Some(questions),
        answerer: Some(summary.spec.who_answered()),
        judge: summary.spec.judge.clone(),
        source: summary.run.id.clone(),
        differs_in: Vec::new(),
    })
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
    let answerer = Some(summary.spec.who_answered());
    differs_in.extend(models("answerer", row.answerer.as_deref(), answerer.as_deref()));
    differs_in.extend(models("judge", row.judge.as_deref(), summary.spec.judge.as_deref()));
    differs_in.extend(match (row.questions, asked) {
        (None, _) => Some("questions not said".to_owned()),
        (Some(theirs), Some(ours)) if theirs == ours => None,
        (Some(_), _) => Some("questions".to_owned()),
    });
    PublishedRow {
        is_this_run: false,
        system: row.system.clone(),
        part: row.part.clone(),
        score: row.score,
        ci95: None,
        questions: row.questions,
        answerer: row.answerer.clone(),
        judge: row.judge.clone(),
        source: row.source.clone(),
        differs_in,
    }
}

/// Whether they had another model in a role: its name has to be among their words.
fn models(role: &str, theirs: Option<&str>, ours: Option<&str>) -> Option<String> {
    let Some(theirs) = theirs else { return Some(format!("{role} not said")) };
    // `openai:gpt-4o-mini` is `gpt-4o-mini` to everybody else
    let name = ours.map(|ours| ours.rsplit(':').next().unwrap_or(ours));
    let is_same = name.is_some_and(|name| theirs.split([' ', ',']).any(|word| word == name));
    (!is_same).then(|| role.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_the_same_by_its_name_alone() {
        assert_eq!(models("judge", Some("gpt-4o-mini x3, generous"), Some("openai:gpt-4o-mini")), None);
        assert_eq!(models("judge", Some("gpt-4o-mini x3"), Some("openai:gpt-4o")), Some("judge".to_owned()));
        assert_eq!(models("judge", None, Some("openai:gpt-4o")), Some("judge not said".to_owned()));
        assert_eq!(models("judge", Some("gpt-4o"), None), Some("judge".to_owned()));
    }
}
