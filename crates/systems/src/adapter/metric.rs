//! One number out of a page of metrics in Prometheus's text format.

/// The value of a metric, or with `a|b` the sum of those that the page has: a server counts for each of the models that it may use.
///
/// # Errors
/// A page that has none of them.
pub(super) fn read(page: &str, metrics: &str) -> Result<f64, String> {
    let there: Vec<f64> = metrics.split('|').filter_map(|metric| one(page, metric.trim())).collect();
    if there.is_empty() {
        let names: Vec<String> = metrics.split('|').map(|metric| format!("'{}'", metric.trim())).collect();
        return Err(format!("the page has no metric {}", names.join(" or ")));
    }
    Ok(there.iter().sum())
}

/// The sum of a metric's samples, whatever their labels; 0 of one that is announced and has none yet, as counters with labels are
/// before their first use; none of one that the page does not have.
fn one(page: &str, metric: &str) -> Option<f64> {
    let (mut announced, mut sum) = (false, 0.0);
    for line in page.lines().map(str::trim) {
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_whitespace();
            // clients announce `x` and `x_total` for one counter
            let named = matches!(words.next(), Some("TYPE" | "HELP"))
                && words.next().is_some_and(|name| name == metric || metric.strip_suffix("_total") == Some(name));
            announced |= named;
            continue;
        }
        let Some(rest) = line.strip_prefix(metric).filter(|rest| rest.starts_with(['{', ' ', '\t'])) else { continue };
        // labels may hold any character but their own quotes
        let values = if rest.starts_with('{') { rest.rsplit_once('}').map_or("", |(_, values)| values) } else { rest };
        if let Some(value) = values.split_whitespace().next().and_then(|value| value.parse::<f64>().ok()) {
            announced = true;
            sum += value;
        }
    }
    announced.then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_and_what_is_absent_is_said() {
        let page = "# HELP tokens_total Tokens\n# TYPE tokens_total counter\ntokens_total{model=\"a } b\"} 12.0\n\
                    tokens_total{model=\"c\"} 3e2 1700000000\ntokens_total_created 5\n# TYPE idle counter\nplain 7\n";
        assert_eq!(read(page, "tokens_total"), Ok(312.0));
        assert_eq!(read(page, "plain"), Ok(7.0));
        assert_eq!(read(page, "idle"), Ok(0.0));
        assert_eq!(read(page, "idle_total"), Ok(0.0));
        assert_eq!(read(page, "tokens"), Err("the page has no metric 'tokens'".to_owned()));
        assert!(read("<html>", "plain").is_err());
    }

    #[test]
    fn of_several_metrics_those_that_are_there_are_summed() {
        let page =
            "# TYPE openai_total counter\nopenai_total{model=\"a\"} 12\n# TYPE embedder counter\nembedder_total 3\n";
        assert_eq!(read(page, "openai_total|bedrock_total|embedder_total"), Ok(15.0));
        assert_eq!(read(page, "bedrock_total|embedder_total"), Ok(3.0));
        let none = "the page has no metric 'bedrock_total' or 'ollama_total'";
        assert_eq!(read(page, "bedrock_total|ollama_total"), Err(none.to_owned()));
    }
}
