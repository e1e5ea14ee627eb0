//! Dashboards and alert rules as code: every metric that they name exists, and Prometheus reads every expression.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use bench_testkit::prometheus::promtool;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Names of all metrics as Prometheus shows them; the document is held to the program by a test of its own.
fn known() -> BTreeSet<String> {
    let document = read("docs/TELEMETRY.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `bench_"));
    let metrics = rows.flat_map(|row| {
        let name = format!("bench_{}", row.split('`').next().unwrap_or_default());
        let is_histogram = row.contains("| histogram |");
        let series = ["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}"));
        if is_histogram { series.to_vec() } else { vec![name] }
    });
    metrics.collect()
}

/// Words of an expression that begin as our metrics do.
fn named(expression: &str) -> BTreeSet<String> {
    let words = expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("bench_")).map(str::to_owned).collect()
}

/// All texts under these keys, at any depth.
fn texts(value: &Value, keys: &[&str], found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if keys.contains(&name.as_str()) => found.push(text.clone()),
                    value => texts(value, keys, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, keys, found)),
        _ => {}
    }
}

fn dashboards() -> Vec<(String, Value)> {
    let folder = root().join("deploy/observability/grafana/dashboards");
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut boards: Vec<(String, Value)> = files
        .map(|file| {
            let path = file.expect("is listed").path();
            let text = fs::read_to_string(&path).expect("is read");
            (path.display().to_string(), serde_json::from_str(&text).expect("a dashboard is JSON"))
        })
        .collect();
    boards.sort_by(|(a, _), (b, _)| a.cmp(b));
    boards
}

#[test]
fn every_metric_that_a_dashboard_or_an_alert_names_exists() {
    let known = known();
    assert!(known.len() > 40, "{known:?}");
    let boards = dashboards();
    assert_eq!(boards.len(), 4, "cluster, run, money, slow questions");
    let mut shown = BTreeSet::new();
    for (path, board) in &boards {
        let mut expressions = Vec::new();
        texts(board, &["expr", "query"], &mut expressions);
        for expression in &expressions {
            let unknown: Vec<String> = named(expression).difference(&known).cloned().collect();
            assert!(unknown.is_empty(), "{path} names metrics that are not there: {unknown:?} in {expression}");
            shown.extend(named(expression));
        }
    }
    let rules = read("deploy/observability/rules.yml");
    let unknown: Vec<String> = named(&rules).difference(&known).cloned().collect();
    assert!(unknown.is_empty(), "alert rules name metrics that are not there: {unknown:?}");
    for alert in
        ["BenchRunStuck", "BenchWorkersSilent", "BenchBudgetNearlySpent", "BenchDeadLetters", "BenchRateStarved"]
    {
        assert!(rules.contains(&format!("alert: {alert}")), "{alert} is missing");
    }
    assert!(shown.len() > 30, "dashboards show most of what there is: {}", shown.len());
}

#[test]
fn every_alert_is_seen_ringing_and_silent_by_a_test() {
    let named = |text: &str, key: &str| -> Vec<(String, usize)> {
        let at = |(line, text): (usize, &str)| {
            let (_, rest) = text.split_once(key)?;
            let name = rest.split([',', '}']).next()?.trim();
            Some((name.to_owned(), line))
        };
        text.lines().enumerate().filter_map(at).collect()
    };
    let tests = read("deploy/observability/rules_test.yml");
    let lines: Vec<&str> = tests.lines().collect();
    let tested = named(&tests, "alertname: ");
    let silent =
        |line: usize| lines[line..lines.len().min(line + 2)].iter().any(|text| text.contains("exp_alerts: []"));
    let alerts = named(&read("deploy/observability/rules.yml"), "- alert: ");
    assert!(alerts.len() >= 5, "{alerts:?}");
    for (alert, _) in alerts {
        for wanted in [true, false] {
            let found = tested.iter().any(|(name, line)| *name == alert && silent(*line) == wanted);
            assert!(found, "no test of rules_test.yml sees {alert} {}", if wanted { "silent" } else { "ringing" });
        }
    }
}

#[test]
fn promtool_takes_the_rules_their_tests_and_every_expression_of_the_dashboards() {
    let folder = root().join("deploy/observability");
    promtool(&["check", "rules", "rules.yml"], &folder).unwrap_or_else(|e| panic!("{e:#}"));
    promtool(&["test", "rules", "rules_test.yml"], &folder).unwrap_or_else(|e| panic!("{e:#}"));
    // as recording rules, so that the same parser reads them
    let mut rules = "groups:\n- name: dashboards\n  rules:\n".to_owned();
    for (_, board) in dashboards() {
        let mut expressions = Vec::new();
        texts(&board, &["expr"], &mut expressions);
        for expression in expressions {
            let plain = expression.replace("$pool", ".*").replace("$run", ".*");
            assert!(!plain.contains('$'), "a variable that is not there: {expression}");
            rules += &format!(
                "  - {{record: 'dashboard:expression', labels: {{of: {}}}, expr: {}}}\n",
                serde_json::to_string(&expression).expect("a text"),
                serde_json::to_string(&plain).expect("a text")
            );
        }
    }
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("dashboards.yml"), rules).expect("is written");
    promtool(&["check", "rules", "dashboards.yml"], place.path()).unwrap_or_else(|e| panic!("{e:#}"));
    // Prometheus' own configuration, with the paths of a container
    let config = read("deploy/observability/prometheus.yml")
        .replace("/etc/prometheus/rules.yml", "rules.yml")
        .replace("/run/bench/http-token", "token");
    fs::write(place.path().join("prometheus.yml"), config).expect("is written");
    fs::write(place.path().join("rules.yml"), read("deploy/observability/rules.yml")).expect("is written");
    fs::write(place.path().join("token"), "a-token").expect("is written");
    promtool(&["check", "config", "prometheus.yml"], place.path()).unwrap_or_else(|e| panic!("{e:#}"));
}
