"""Alert rules: each has tests that see it ringing, silent, and after its series have ended; promtool runs them over the file and over what
the chart makes of it; each is in the runbook."""

import copy
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import yaml
from binaries import ROOT, source
from chart import VALUE_SETS, documents, render

RULES = yaml.safe_load(source("deploy/observability/rules.yml"))
TESTS = yaml.safe_load(source("deploy/observability/rules_test.yml"))
ALERTS = {rule["alert"]: rule for group in RULES["groups"] for rule in group["rules"]}
# labels of these are those of a series or of a matcher, and not of an aggregation
WITH_NAMESPACE = {"BenchNoCoordinator", "BenchTargetDown"}
# another release of the same Prometheus, in which all is well
OTHERS = [
    'bench_coordinator_leading{namespace="other",instance="a"}',
    'bench_slots{namespace="other",instance="b",role="question"}',
    'bench_workers{namespace="other",pool="default",state="alive"}',
    'bench_queue_consumers{namespace="other",pool="gpu",role="question"}',
    'up{namespace="other",job="bench-coord",instance="a"}',
]


def metrics(expression):
    return set(re.findall(r"\b(?:up|bench_\w+)\b", re.sub(r'"[^"]*"', "", expression)))


def end_of(values):
    """Minute at which a series ends for the last time, None when it goes on."""
    at, ended = 0, None
    for word in values.split():
        if word == "stale":
            at, ended = at + 1, at
            continue
        repeats = re.search(r"x(\d+)$", word)
        at += int(repeats[1]) + (word[0] != "_") if repeats else 1
        ended = ended if word[0] == "_" else None
    return ended


def lacking(alerts, tests):
    """What no test sees of each alert: ringing, silent, ended (silent or ringing after a series of its expression has ended)."""
    found = {name: {"ringing", "silent", "ended"} for name in alerts}
    for group in tests:
        ends = [(series["series"].split("{")[0], end_of(series["values"])) for series in group["input_series"]]
        for test in group["alert_rule_test"]:
            name = test["alertname"]
            missing = found[name]
            missing.discard("ringing" if test["exp_alerts"] else "silent")
            minute = int(test["eval_time"].removesuffix("m"))
            if any(end is not None and end < minute and metric in metrics(alerts[name]["expr"]) for metric, end in ends):
                missing.discard("ended")
    return {name: missing for name, missing in found.items() if missing}


def promtool(rules, tests):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rules.yml").write_text(yaml.safe_dump(rules, sort_keys=False), encoding="utf-8")
        (Path(folder) / "tests.yml").write_text(yaml.safe_dump(tests, sort_keys=False), encoding="utf-8")
        for words in (["check", "rules", "rules.yml"], ["test", "rules", "tests.yml"]):
            done = subprocess.run(["promtool", *words], cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                return done.stdout + done.stderr
    return ""


def of_chart():
    (rules,) = (thing["spec"] for thing in documents(render(VALUE_SETS["observed"])) if thing["kind"] == "PrometheusRule")
    return rules


class Alerts(unittest.TestCase):
    def test_every_rule_has_its_tests(self):
        self.assertEqual(lacking(ALERTS, TESTS["tests"]), {})
        self.assertEqual([test["interval"] for test in TESTS["tests"] if test["interval"] != "1m"], [])

    def test_a_rule_without_tests_is_found(self):
        self.assertIn("BenchNew", lacking(ALERTS | {"BenchNew": {"expr": "up == 0"}}, TESTS["tests"]))
        for name in ALERTS:
            for part in (lambda t: t["exp_alerts"], lambda t: not t["exp_alerts"]):
                fewer = copy.deepcopy(TESTS["tests"])
                for group in fewer:
                    group["alert_rule_test"] = [t for t in group["alert_rule_test"] if t["alertname"] != name or part(t)]
                with self.subTest(name):
                    self.assertEqual(set(lacking(ALERTS, fewer)), {name})

    def test_ends_of_series(self):
        for values, wanted in [("1x5", None), ("1x5 stale", 6), ("1x5 stale _x3", 6), ("_x3 1x2 stale _x9", 6), ("1 stale 1x3", None)]:
            self.assertEqual(end_of(values), wanted, values)

    def test_promtool_runs_them(self):
        self.assertEqual(promtool(RULES, TESTS | {"rule_files": ["rules.yml"]}), "")

    def test_the_charts_rules_see_their_own_release_alone(self):
        rules = of_chart()
        plain = copy.deepcopy(rules)
        for group in plain["groups"]:
            for rule in group["rules"]:
                for name in metrics(rule["expr"]):
                    found = len(re.findall(rf"\b{name}\b", rule["expr"]))
                    self.assertEqual(found, len(re.findall(rf'\b{name}\{{namespace="bench"[,}}]', rule["expr"])), rule["expr"])
                rule["expr"] = rule["expr"].replace('{namespace="bench"}', "").replace('namespace="bench",', "")
        self.assertEqual(plain, RULES)

        tests = copy.deepcopy(TESTS) | {"rule_files": ["rules.yml"]}
        for group in tests["tests"]:
            for series in group["input_series"]:
                name, _, labels = series["series"].rstrip("}").partition("{")
                series["series"] = name + "{" + ",".join(filter(None, ['namespace="bench"', labels])) + "}"
            group["input_series"] += [{"series": name, "values": "1x50"} for name in OTHERS]
            for test in group["alert_rule_test"]:
                for alert in test["exp_alerts"]:
                    if test["alertname"] in WITH_NAMESPACE:
                        alert["exp_labels"]["namespace"] = "bench"
        self.assertEqual(promtool(rules, tests), "")
        # without the namespace the other release hides that this one is dead
        self.assertIn("BenchNoCoordinator", promtool(RULES, tests))

    def test_the_jobs_are_the_same_everywhere(self):
        wanted = set(re.search(r'up\{job=~"([^"]+)"', ALERTS["BenchTargetDown"]["expr"])[1].split("|"))
        composed = yaml.safe_load(source("deploy/observability/prometheus.yml"))["scrape_configs"]
        self.assertEqual({config["job_name"] for config in composed}, wanted)
        monitors = [thing["spec"] for thing in documents(render(VALUE_SETS["observed"])) if thing["kind"].endswith("Monitor")]
        ends = [end for spec in monitors for end in spec.get("endpoints", []) + spec.get("podMetricsEndpoints", [])]
        self.assertEqual({e["relabelings"][0]["replacement"] for e in ends if e["relabelings"][0]["targetLabel"] == "job"}, wanted)

    def test_every_alert_is_in_the_runbook(self):
        rows = re.findall(r"(?m)^\| `(Bench\w+)` \|", source("docs/OPERATIONS.md"))
        self.assertEqual(rows, list(ALERTS))
        for path in (ROOT / "docs").glob("*.md"):
            self.assertEqual(set(re.findall(r"`(Bench[A-Z]\w+)`", path.read_text(encoding="utf-8"))) - set(ALERTS), set(), path)


if __name__ == "__main__":
    unittest.main()
