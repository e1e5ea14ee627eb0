//! Figures as the published results of a dataset count them.

use bench_proto::{
    profile::{FigureSpec, MeanOf},
    summary::{MetricScore, PublishedFigure},
};

use crate::{
    cells::{Cell, Tally},
    score::Category,
};

/// The figures that a profile wants of the headline metric: `score` are its totals, `cells` its scores by stratum and bank,
/// `counted` the strata that the headline counts. A figure of a facet is about the questions of all categories.
pub(crate) fn figures(
    wanted: &[FigureSpec],
    score: Option<&MetricScore>,
    cells: &[Cell],
    counted: &[Category],
) -> Vec<PublishedFigure> {
    let Some(score) = score else { return Vec::new() };
    let mut figures = Vec::new();
    for spec in wanted {
        let figure = |name: String, value, n| PublishedFigure { name, value, n, written: spec.written };
        match (&spec.facet, &spec.value) {
            (Some(facet), Some(value)) => {
                let of_value = score.by_facet.get(facet).and_then(|values| values.get(value));
                figures.push(figure(
                    spec.name.clone(),
                    of_value.and_then(|of| of.value),
                    of_value.map_or(0, |of| of.n),
                ));
            }
            (Some(facet), None) => {
                let mut values: Vec<_> = score.by_facet.get(facet).into_iter().flatten().collect();
                // numbers by their size, whatever else by its name behind them
                let number = |value: &str| value.parse().unwrap_or(f64::INFINITY);
                values.sort_by(|(a, _), (b, _)| number(a).total_cmp(&number(b)));
                figures.extend(
                    values.into_iter().map(|(value, of)| figure(format!("{}: {value}", spec.name), of.value, of.n)),
                );
            }
            (None, _) => {
                let value = match spec.mean_of {
                    MeanOf::Questions => score.micro,
                    MeanOf::Categories => score.macro_,
                    MeanOf::Banks => mean_of_banks(cells, counted),
                };
                figures.push(figure(spec.name.clone(), value, score.n));
            }
        }
    }
    figures
}

/// Every bank with a score has one part.
fn mean_of_banks(cells: &[Cell], counted: &[Category]) -> Option<f64> {
    let mut counted: Vec<&Cell> =
        cells.iter().filter(|cell| counted.iter().any(|category| category.number == cell.stratum)).collect();
    counted.sort_by_key(|cell| cell.cluster);
    let banks = counted.chunk_by(|a, b| a.cluster == b.cluster);
    let means: Vec<f64> = banks.filter_map(|of_bank| Tally::merged(of_bank.iter().copied()).mean()).collect();
    (!means.is_empty()).then(|| means.iter().sum::<f64>() / means.len() as f64)
}

#[cfg(test)]
mod tests {
    use bench_proto::{metric::Scale, profile::Written, summary::Estimator};

    use super::*;
    use crate::{
        cells::cells_of,
        score::{Sampling, facet_scores, metric_score},
    };

    fn spec(name: &str, mean_of: MeanOf) -> FigureSpec {
        FigureSpec { name: name.to_owned(), mean_of, ..FigureSpec::default() }
    }

    #[test]
    fn questions_categories_banks_and_values_of_facets_are_different_means() {
        let category =
            |number: u32, name: &str| Category { number, name: name.to_owned(), population: None, asked: 4, lost: 0 };
        let categories = [category(0, "facts"), category(1, "left out"), category(2, "orders")];
        let counted = [categories[0].clone(), categories[2].clone()];
        // facts: 1 and 1 in bank 0, 0 in bank 1; orders: 0.5 in bank 1
        let scores = [(0, 0, 1.0), (0, 0, 1.0), (0, 1, 0.0), (2, 1, 0.5), (1, 0, 0.0)];
        let cells = cells_of(scores.into_iter(), Scale::PLAIN);
        let better = Scale::PLAIN.better;
        let sampling = Sampling { estimator: Estimator::Mean, better, by_chance: false, census: true };
        let mut score = metric_score("judge", &cells, (&categories, &counted), sampling, Scale::PLAIN);
        let of_facet = cells_of([(0, 0, 1.0), (0, 1, 0.5)].into_iter(), Scale::PLAIN);
        // of the second value no question has a score
        let values = facet_scores(&of_facet, &["10".to_owned(), "4".to_owned()]);
        score.by_facet.insert("context_size".to_owned(), values);
        let by_size = FigureSpec { facet: Some("context_size".to_owned()), ..spec("size", MeanOf::default()) };
        let one = FigureSpec { value: Some("10".to_owned()), written: Written::PercentHalfUp, ..by_size.clone() };
        let none = FigureSpec {
            facet: Some("unknown".to_owned()),
            value: Some("x".to_owned()),
            ..spec("none", MeanOf::default())
        };
        let wanted = [
            spec("questions", MeanOf::Questions),
            spec("categories", MeanOf::Categories),
            spec("banks", MeanOf::Banks),
            one,
            by_size,
            none,
        ];
        let got: Vec<(String, Option<f64>, u64)> =
            figures(&wanted, Some(&score), &cells, &counted).into_iter().map(|f| (f.name, f.value, f.n)).collect();
        let expected = [
            ("questions", Some(0.625), 4),
            ("categories", Some((2.0 / 3.0 + 0.5) / 2.0), 4),
            ("banks", Some(0.625), 4),
            ("size", Some(0.75), 2),
            ("size: 4", None, 0),
            ("size: 10", Some(0.75), 2),
            ("none", None, 0),
        ];
        assert_eq!(got, expected.map(|(name, value, n)| (name.to_owned(), value, n)));
        assert!(figures(&wanted, None, &cells, &counted).is_empty());
        assert_eq!(mean_of_banks(&[], &counted), None, "a mean of nothing");
    }
}
