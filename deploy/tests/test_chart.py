"""The chart: it renders, Kubernetes would take it, it keeps to its promises, it refuses what is wrong."""

import copy
import hashlib
import json
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import helm_python as helm
import yaml
from binaries import ROOT, settings, source, unknown_flags, unknown_settings, variables
from chart import (
    CHART,
    EVERYTHING,
    METER,
    OURS,
    OWN_SECRETS,
    RUN,
    SECRET,
    VALUE_SETS,
    containers_of,
    documents,
    every_container_of,
    label,
    objects,
    pod_of,
    render,
)
from schemas import custom, problems

SNAPSHOTS = Path(__file__).parent / "snapshots"
VERSIONS = ["1.28", "1.29", "1.30", "1.31", "1.32", "1.33", "1.34"]


def pods(name):
    return [(label(thing), thing, pod_of(thing)) for thing in objects(name) if pod_of(thing)]


def every_pod():
    return [(f"{name}: {where}", thing, pod) for name in VALUE_SETS for where, thing, pod in pods(name)]


def of_kind(name, kind):
    return [thing for thing in objects(name) if thing["kind"] == kind]


def without_files(thing):
    """Without what is a file elsewhere and has tests of its own: alert rules and dashboards."""
    if thing["kind"] == "PrometheusRule":
        return thing | {"spec": "files/rules.yml"}
    if any(name.endswith(".json") for name in thing.get("data", {})):
        return thing | {"data": {name: f"files/dashboards/{name}" for name in thing["data"]}}
    return thing


def merged(base, over):
    """`base` with what `over` says in its place, maps by their keys."""
    if not (isinstance(base, dict) and isinstance(over, dict)):
        return over
    return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}


class Rendering(unittest.TestCase):
    def test_lint_finds_nothing(self):
        for name, values in ({"as it is": {}} | VALUE_SETS).items():
            found = helm.lint(str(CHART), values, strict=True)
            self.assertEqual([m for m in found["messages"] if m["error"] != "icon is recommended"] + found["errors"], [], name)

    def test_kubernetes_takes_every_object(self):
        for name in VALUE_SETS:
            versions = VERSIONS if name == "everything" else [VERSIONS[0], VERSIONS[-1]]
            for thing in objects(name):
                for version in versions:
                    with self.subTest(f"{name}: {label(thing)} on {version}"):
                        self.assertEqual(problems(thing, version), [])

    def test_the_schemas_find_mistakes(self):
        def of(name, kind):
            return copy.deepcopy(of_kind(name, kind)[0])

        def put(thing, path, value):
            *path, last = path
            for part in path:
                thing = thing[part]
            thing[last] = value

        for name, kind, path, value in [
            ("default", "Deployment", ["spec", "minReplica"], 1),
            ("keda", "ScaledObject", ["spec", "maxReplicas"], 1),
            ("keda", "ScaledObject", ["spec", "fallback", "replicas"], "two"),
            ("keda", "ScaledObject", ["spec", "advanced", "horizontalPodAutoscalerConfig", "behavior"], 7),
            ("keda", "TriggerAuthentication", ["spec", "secretTargetRef", 0, "keys"], "x"),
            ("everything", "ServiceMonitor", ["spec", "podMetricsEndpoints"], []),
            ("everything", "PodMonitor", ["spec", "podMetricsEndpoints", 0, "authorization", "secret"], {}),
            ("everything", "PrometheusRule", ["spec", "groups", 0, "rules", 0, "expression"], "up"),
        ]:
            thing = of(name, kind)
            self.assertEqual(problems(thing, VERSIONS[-1]), [])
            put(thing, path, value)
            with self.subTest(f"{kind} {path}"):
                self.assertNotEqual(problems(thing, VERSIONS[-1]), [])

    def test_operators_objects_are_held_to_two_versions(self):
        kinds = {(t["apiVersion"], t["kind"]) for name in VALUE_SETS for t in objects(name) if "." in t["apiVersion"]}
        theirs = {(api, kind) for api, kind in kinds if not api.split("/")[0].endswith("k8s.io")}
        apis = {"keda.sh/v1alpha1": 2, "monitoring.coreos.com/v1": 3}
        self.assertEqual({api for api, _ in theirs}, set(apis))
        for api, count in apis.items():
            self.assertEqual(sum(1 for a, _ in theirs if a == api), count)
            self.assertEqual(len(custom(api)), 2)

    def test_names_are_unique_and_short_enough(self):
        long = {"fullnameOverride": "x" * 40, "workers": {"w" * 14: {}}, "runs": {"r" * 11: {"args": []}}}
        for things in [*map(objects, VALUE_SETS), documents(render(SECRET | long))]:
            names = [label(thing) for thing in things]
            self.assertEqual(len(names), len(set(names)))
            for thing in things:
                longest = 52 if thing["kind"] == "CronJob" else 63
                self.assertLessEqual(len(thing["metadata"]["name"]), longest, label(thing))

    def test_snapshots(self):
        for name in ("default", "production"):
            made = "\n".join("---\n" + yaml.safe_dump(without_files(thing), sort_keys=False) for thing in objects(name))
            # as it is shown, without line ends that editors take away
            path = SNAPSHOTS / f"{name}.yaml"
            if os.environ.get("BENCH_ACCEPT"):
                path.parent.mkdir(exist_ok=True)
                path.write_text(made, encoding="utf-8")
            self.assertEqual(path.read_text(encoding="utf-8"), made, f"{path}: BENCH_ACCEPT=1 takes the new rendering")

    def test_readme_is_made_of_the_values(self):
        done = subprocess.run(
            [sys.executable, ROOT / "scripts/helm-readme.py", "--check"], capture_output=True, text=True, check=False
        )
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_notes_name_an_object_that_is_there(self):
        notes = next(text for path, text in render(VALUE_SETS["template-run"]).items() if path.endswith("NOTES.txt"))
        names = {thing["metadata"]["name"] for thing in objects("template-run")}
        for name in re.findall(r"(?:deploy|cronjob)/(\S+)", notes):
            self.assertIn(name, names)


    def test_who_upgrades_with_old_values_is_told_what_to_set(self):
        def notes(values, **options):
            return next(text for path, text in render(values, **options).items() if path.endswith("NOTES.txt"))

        told = notes(SECRET, is_install=False, is_upgrade=True)
        named = set(re.findall(r"worker\.allow\.(\w+)", told))
        allow = yaml.safe_load(source("helm/bench-coord/values.yaml"))["worker"]["allow"]
        self.assertEqual(named, {"systems", "hosts", "secrets", "variables"})
        self.assertLessEqual(named, set(allow))
        self.assertIn("allow_plaintext", told)
        self.assertIn("allow_plaintext = [", source("crates/settings/default-config.toml"))
        for values in [{"worker": {"allow": {"systems": ["0" * 64]}}}, {"workers": {"main": {"allow": {"hosts": ["mem.internal"]}}}}]:
            told = notes(SECRET | values, is_install=False, is_upgrade=True)
            self.assertNotIn("worker.allow", told)
            self.assertIn("allow_plaintext", told)
        self.assertNotIn("next release", notes(SECRET))

    def test_the_chart_has_what_settings_may_allow(self):
        """What CHANGELOG tells upgraders to set is there, and each [allow] of the settings can be set for workers."""
        allow = yaml.safe_load(source("helm/bench-coord/values.yaml"))["worker"]["allow"]
        section = source("crates/settings/default-config.toml").split("\n[allow]\n")[1].split("\n[")[0]
        self.assertEqual(set(allow), set(re.findall(r"(?m)^(\w+) = ", section)))
        told, values = source("CHANGELOG.md"), yaml.safe_load(source("helm/bench-coord/values.yaml"))
        for first, last in [("worker", "allow"), ("migrate", "roles"), ("secrets", "runSecret")]:
            self.assertIn(f"`{first}.{last}`", told)
            self.assertIn(last, values[first])


class Promises(unittest.TestCase):
    def test_pods_keep_to_the_restricted_profile(self):
        for where, _, pod in every_pod():
            with self.subTest(where):
                self.assertFalse(pod["automountServiceAccountToken"])
                self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                self.assertGreater(pod["securityContext"]["runAsUser"], 0)
                self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
                for field in ("hostNetwork", "hostPID", "hostIPC"):
                    self.assertNotIn(field, pod)
                for volume in pod["volumes"]:
                    allowed = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
                    self.assertTrue(set(volume) & allowed, volume)
                for container in every_container_of(pod):
                    context = container["securityContext"]
                    self.assertIs(context["allowPrivilegeEscalation"], False)
                    self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
                for container in containers_of(pod):
                    self.assertIs(container["securityContext"]["readOnlyRootFilesystem"], True)
                    self.assertIn("memory", container["resources"]["limits"])
                    self.assertEqual(set(container["resources"]["requests"]), {"cpu", "memory", "ephemeral-storage"})
                    self.assertNotRegex(container["image"], r":latest$|^[^:@]+$")

    def test_long_running_pods_have_probes_that_the_binaries_know(self):
        for where, thing, pod in every_pod():
            for container in containers_of(pod):
                for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                    with self.subTest(f"{where} {probe}"):
                        self.assertEqual(probe in container, thing["kind"] == "Deployment")
                        if probe in container:
                            command = container[probe]["exec"]["command"]
                            self.assertEqual(unknown_flags(command), set())
                            port = re.search(r":(\d+)/(healthz|readyz)$", command[-1])[1]
                            self.assertRegex(" ".join(container["args"]), rf"--listen=\S+:{port}\b")

    def test_flags_variables_and_settings_exist(self):
        for where, _, pod in every_pod():
            for container in containers_of(pod):
                with self.subTest(where):
                    self.assertEqual(unknown_flags(container["command"] + container["args"]), set())
                    ours = {entry["name"] for entry in container["env"] if entry["name"].startswith(("BENCH_", "OPENAI_", "OTEL_"))}
                    self.assertEqual(ours - variables(), set())
        self.assertIn("models.timeout", settings())
        for name, values in VALUE_SETS.items():
            self.assertEqual(unknown_settings(values.get("settings", "")), set(), name)

    def test_grace_period_is_drain_and_thirty_seconds(self):
        seen = set()
        for _, thing, pod in every_pod():
            args = pod["containers"][0]["args"]
            drain = next((int(arg.split("=")[1]) for arg in args if arg.startswith("--drain=")), None)
            if drain is not None:
                seen.add(drain)
                self.assertEqual(pod["terminationGracePeriodSeconds"], drain + 30)
        self.assertEqual(seen, {180, 400})

    def test_a_meter_listens_until_nobody_is_sent_to_it_any_more(self):
        drain = int(re.search(r"const DRAIN: Duration = Duration::from_secs\((\d+)\)", source("coordinator/src/commands/meter.rs"))[1])
        for name in ("everything", "meter"):
            (pod,) = (pod for where, _, pod in pods(name) if where.endswith("-meter"))
            (container,) = containers_of(pod)
            self.assertEqual(container["lifecycle"], {"preStop": {"exec": {"command": ["sleep", "5"]}}})
            self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], 5 + drain + 30)

    def test_a_scaler_reaches_coordinators_that_do_not_reach_the_store(self):
        for name in VALUE_SETS:
            for service in of_kind(name, "Service"):
                is_coordinator = service["metadata"]["name"].endswith("-coordinator")
                self.assertIs(service["spec"].get("publishNotReadyAddresses", False), is_coordinator, name)

    def test_secrets_are_in_secrets_only(self):
        for values in (OWN_SECRETS, EVERYTHING):
            inside = set()
            for thing in documents(render(values)):
                found = set(re.findall(r"sentinel-\w+", yaml.safe_dump(thing)))
                if thing["kind"] == "Secret":
                    inside |= found
                else:
                    self.assertEqual(found, set(), label(thing))
            wanted = {"sentinel-store", "sentinel-queue", "sentinel-token", "sentinel-key"}
            self.assertEqual(inside, wanted | ({"sentinel-bucket", "sentinel-meter"} if values is EVERYTHING else set()))

    def test_the_mark_of_secrets_changes_with_them_and_is_no_plain_hash_of_them(self):
        def mark(values, name="bench-coord"):
            with helm.Chart.load(str(CHART)) as chart:
                text = str(chart.render(values, name=name, namespace="bench"))
            marks = set(re.findall(r"checksum/secrets: ([0-9a-f]{64})", text))
            self.assertEqual(len(marks), 1, "one for all pods")
            return marks.pop()

        changed = copy.deepcopy(OWN_SECRETS)
        changed["secrets"]["httpToken"] = "another-token-0123456789"
        self.assertEqual(mark(OWN_SECRETS), mark(OWN_SECRETS), "an upgrade without a change restarts nothing")
        marks = {mark(OWN_SECRETS), mark(changed), mark(OWN_SECRETS, "other"), mark(SECRET)}
        self.assertEqual(len(marks), 4, "each value, and each release, has its own")

        def plain(values):
            all_values = merged(yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8")), values)
            read = [all_values["secrets"], [all_values["accounts"], all_values["objectStore"]]]
            text = " ".join(json.dumps(part, separators=(",", ":"), sort_keys=True) for part in read)
            return hashlib.sha256(text.encode()).hexdigest()

        self.assertEqual(mark(SECRET), plain(SECRET), "what names no secret has none to hide")
        self.assertNotEqual(mark(OWN_SECRETS), plain(OWN_SECRETS))

    def test_secrets_that_pods_name_are_there(self):
        theirs = {"bench", "bench-worker", "bench-owner", "bench-accounts", "bench-archive", "bench-db-app", "bench-mq-default-user"}
        for name in VALUE_SETS:
            made = {thing["metadata"]["name"]: set(thing["stringData"]) for thing in of_kind(name, "Secret")}
            for where, _, pod in pods(name):
                for container in containers_of(pod):
                    named = [e["valueFrom"]["secretKeyRef"] for e in container["env"] if "secretKeyRef" in e.get("valueFrom", {})]
                    for ref in named:
                        known = ref["name"] in theirs or ref["key"] in made.get(ref["name"], ())
                        self.assertTrue(known, f"{name}: {where} {ref}")
                    for ref in container.get("envFrom", []):
                        self.assertIn(ref["secretRef"]["name"], theirs | set(made))

    def test_only_who_calls_models_gets_keys_and_only_who_listens_the_token(self):
        for name, scraped in (("everything", True), ("own-secrets", False), ("meter-own-secrets", False)):
            for where, _, pod in pods(name):
                container = containers_of(pod)[0]
                worker = container["command"] == ["bench-worker"]
                from_secrets = [entry["secretRef"]["name"] for entry in container.get("envFrom", [])]
                calls = worker or container["args"][0] == "meter"
                self.assertEqual(any(named.endswith("-accounts") for named in from_secrets), calls, where)
                tokens = [entry for entry in container["env"] if entry["name"] == "BENCH_HTTP_TOKEN"]
                self.assertEqual(bool(tokens), container["args"][0] == "serve" or (worker and scraped), where)

    def test_the_meter_is_there_when_it_is_wanted_and_all_that_make_keys_make_the_same(self):
        def secret(container):
            return next((e["valueFrom"]["secretKeyRef"] for e in container["env"] if e["name"] == "BENCH_METER_SECRET"), None)

        for name in VALUE_SETS:
            deployed = [thing for thing in of_kind(name, "Deployment") if thing["metadata"]["name"].endswith("-meter")]
            wanted = name in ("everything", "meter", "meter-own-secrets")
            self.assertEqual(len(deployed), int(wanted), name)
            for where, thing, pod in pods(name):
                container = containers_of(pod)[0]
                with self.subTest(f"{name}: {where}"):
                    makes_keys = wanted and (thing["kind"] == "Deployment")
                    self.assertEqual(secret(container) is not None, makes_keys)
                    if makes_keys:
                        self.assertEqual(secret(container), secret(containers_of(pod_of(deployed[0]))[0]))
                    urls = [e["value"] for e in container["env"] if e["name"] == "BENCH_METER_PUBLIC_URL"]
                    # a worker's own systems have a meter in the worker, which knows the bank that it works on
                    self.assertEqual(len(urls), int(makes_keys and container["args"][0] == "serve"))
            if name == "meter":
                (service,) = (thing for thing in of_kind(name, "Service") if thing["metadata"]["name"].endswith("-meter"))
                labels = deployed[0]["spec"]["template"]["metadata"]["labels"]
                self.assertLessEqual(service["spec"]["selector"].items(), labels.items())
                coordinator = next(pod for where, _, pod in pods(name) if where.endswith("-coordinator"))
                url = next(e["value"] for e in containers_of(coordinator)[0]["env"] if e["name"] == "BENCH_METER_PUBLIC_URL")
                self.assertEqual(url, f"http://{service['metadata']['name']}.bench.svc.cluster.local:{service['spec']['ports'][0]['port']}")

    def test_the_meter_reaches_providers_and_is_reached_by_whom_is_named(self):
        policies = {t["metadata"]["name"]: t["spec"] for t in of_kind("everything", "NetworkPolicy")}
        self.assertEqual(policies["bench-coord-bc-providers"]["podSelector"]["matchExpressions"][0]["values"], ["worker", "meter"])
        way_in = policies["bench-coord-bc-meter"]
        self.assertEqual(way_in["ingress"][0]["from"], EVERYTHING["networkPolicy"]["meterFrom"])
        self.assertEqual(way_in["podSelector"]["matchLabels"]["app.kubernetes.io/component"], "meter")
        named = [t["metadata"]["name"] for t in of_kind("meter", "NetworkPolicy")]
        self.assertFalse([name for name in named if name.endswith("-meter")], "by nobody when nobody is named")

    def test_what_memory_systems_may_do_is_told_to_workers_alone(self):
        allow = {"systems": ["0" * 64, "1" * 64], "hosts": ["mem.internal:80"], "secrets": []}
        told = {}
        for thing in documents(render(EVERYTHING | {"worker": {"allow": allow}})):
            for container in (pod_of(thing) or {"containers": []})["containers"]:
                told[label(thing)] = {e["name"]: e.get("value") for e in container.get("env", []) if e["name"].startswith("BENCH_ALLOW_")}
        wanted = {"BENCH_ALLOW_SYSTEMS": f"{'0' * 64},{'1' * 64}", "BENCH_ALLOW_HOSTS": "mem.internal:80"}
        for name, found in told.items():
            self.assertEqual(found, wanted if "-worker-" in name else {}, name)

    def test_who_is_scraped_listens_and_every_file_is_in_the_chart(self):
        monitors = of_kind("everything", "ServiceMonitor") + of_kind("everything", "PodMonitor")
        self.assertEqual(len(monitors), 2)
        for monitor in monitors:
            wanted = monitor["spec"]["selector"]["matchLabels"].items()
            if monitor["kind"] == "ServiceMonitor":
                (service,) = (s for s in of_kind("everything", "Service") if wanted <= s["metadata"]["labels"].items())
                self.assertEqual([port["name"] for port in service["spec"]["ports"]], [monitor["spec"]["endpoints"][0]["port"]])
                wanted = service["spec"]["selector"].items()
            running = [thing["spec"]["template"] for thing in of_kind("everything", "Deployment")]
            scraped = [template["spec"] for template in running if wanted <= template["metadata"]["labels"].items()]
            self.assertTrue(scraped, label(monitor))
            for pod in scraped:
                container = pod["containers"][0]
                self.assertEqual([port["name"] for port in container["ports"]], ["http"])
                self.assertTrue(any(arg.startswith("--listen=0.0.0.0:") for arg in container["args"]))
        self.assertEqual(len(of_kind("everything", "PrometheusRule")), 1)
        boards = {key for thing in of_kind("everything", "ConfigMap") for key in thing["data"] if key.endswith(".json")}
        files = {path.name for path in (ROOT / "deploy/observability/grafana/dashboards").iterdir()}
        self.assertEqual(boards, files)
        for name in ("default", "small"):
            theirs = ("ServiceMonitor", "PodMonitor", "PrometheusRule")
            self.assertEqual([thing for kind in theirs for thing in of_kind(name, kind)], [])

    def test_the_migration_needs_nothing_that_is_not_there_before_an_install(self):
        for name in VALUE_SETS:
            for job in of_kind(name, "Job"):
                self.assertEqual(job["metadata"]["annotations"]["helm.sh/hook"], "pre-install,pre-upgrade")
                hooks = {
                    thing["metadata"]["name"]
                    for thing in objects(name)
                    if "helm.sh/hook" in thing["metadata"].get("annotations", {})
                }
                made = {thing["metadata"]["name"] for thing in of_kind(name, "Secret")}
                pod = pod_of(job)
                for entry in pod["containers"][0]["env"]:
                    ref = entry.get("valueFrom", {}).get("secretKeyRef")
                    if ref and ref["name"] in made:
                        self.assertIn(ref["name"], hooks)
                of_release = {thing["metadata"]["name"] for thing in objects(name)} - hooks
                for volume in pod["volumes"]:
                    self.assertNotIn(volume.get("configMap", volume.get("secret", {})).get("name"), of_release)
                self.assertNotIn(pod["serviceAccountName"], of_release)
        self.assertIn("--pool=eu", pod_of(of_kind("everything", "Job")[0])["containers"][0]["args"])

    def test_the_migration_has_its_network_policy_before_it_runs(self):
        for name in VALUE_SETS:
            jobs = of_kind(name, "Job")
            hooks = [p for p in of_kind(name, "NetworkPolicy") if "helm.sh/hook" in p["metadata"].get("annotations", {})]
            self.assertEqual(len(hooks), 0 if name == "no-policies" else len(jobs), name)
            for job, policy in zip(jobs, hooks, strict=False):
                first, then = policy["metadata"]["annotations"], job["metadata"]["annotations"]
                self.assertEqual(first["helm.sh/hook"], then["helm.sh/hook"])
                self.assertLess(int(first["helm.sh/hook-weight"]), int(then["helm.sh/hook-weight"]))
                labels = job["spec"]["template"]["metadata"]["labels"].items()
                self.assertLessEqual(policy["spec"]["podSelector"]["matchLabels"].items(), labels)
                self.assertEqual(policy["spec"]["policyTypes"], ["Ingress", "Egress"])
                self.assertNotIn("ingress", policy["spec"])
                # the same ways out as those of the release, which are there later
                release = next(p for p in of_kind(name, "NetworkPolicy") if p["metadata"]["name"].endswith("-store-and-queue"))
                for rule in release["spec"]["egress"]:
                    self.assertIn(rule, policy["spec"]["egress"])

    def test_keda_asks_the_coordinator(self):
        page = source("coordinator/src/commands/serve.rs")
        self.assertIn('"desired_workers"', page)
        for name in ("keda", "keda-never-zero", "production", "everything"):
            services = {f"{thing['metadata']['name']}.bench.svc": thing for thing in of_kind(name, "Service")}
            auths = {thing["metadata"]["name"] for thing in of_kind(name, "TriggerAuthentication")}
            for thing in of_kind(name, "ScaledObject"):
                spec = thing["spec"]
                target = next(d for d in of_kind(name, "Deployment") if d["metadata"]["name"] == spec["scaleTargetRef"]["name"])
                self.assertNotIn("replicas", target["spec"], "an upgrade would reset what KEDA found")
                args = pod_of(target)["containers"][0]["args"]
                pool, roles = (next(a.split("=")[1] for a in args if a.startswith(f)) for f in ("--pool=", "--roles="))
                asked = []
                for trigger in spec["triggers"]:
                    self.assertEqual(trigger["type"], "metrics-api")
                    meta = trigger["metadata"]
                    self.assertEqual((meta["valueLocation"], meta["targetValue"], meta["authMode"]), ("desired_workers", "1", "bearer"))
                    host, port, path = re.match(r"http://([\w.-]+):(\d+)(/\S+)", meta["url"]).groups()
                    service = next(services[s] for s in services if host.startswith(s + "."))
                    self.assertEqual(service["spec"]["ports"][0]["port"], int(port))
                    asked.append(path)
                    self.assertIn(trigger["authenticationRef"]["name"], auths)
                self.assertEqual(asked, [f"/api/scale/{pool}/{role}" for role in roles.split(",")])
                window = spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]["scaleDown"]
                self.assertEqual((window["stabilizationWindowSeconds"], spec["cooldownPeriod"]), (300, 300))
        counts = [of_kind(name, "ScaledObject")[0]["spec"]["minReplicaCount"] for name in ("keda", "keda-never-zero")]
        self.assertEqual(counts, [0, 1])

    def test_fallbacks(self):
        fixed = [d for d in of_kind("fixed", "Deployment") if "worker" in d["metadata"]["name"]]
        self.assertEqual([d["spec"]["replicas"] for d in fixed], [7])
        self.assertEqual(of_kind("fixed", "HorizontalPodAutoscaler"), [])
        hpa = of_kind("hpa", "HorizontalPodAutoscaler")[0]["spec"]
        self.assertEqual((hpa["minReplicas"], hpa["metrics"][0]["resource"]["name"]), (1, "cpu"))
        self.assertEqual(of_kind("hpa", "ScaledObject"), [])
        overridden = [d for d in of_kind("everything", "Deployment") if d["metadata"]["name"].endswith("fixed")]
        self.assertEqual(overridden[0]["spec"]["replicas"], 0, "a zero beats the default")

    def test_runs_are_jobs_that_may_be_repeated(self):
        exits = {name: int(code) for name, code in re.findall(r"(\w+) = (\d),", source("coordinator/src/exit.rs"))}
        final = sorted(exits[name] for name in ("Regression", "Usage", "Resumable", "Invalid", "Inconclusive"))
        for name in ("production", "everything", "template-run", "air-gapped"):
            for cron in of_kind(name, "CronJob"):
                spec = cron["spec"]
                self.assertEqual(spec["concurrencyPolicy"], "Forbid")
                container = containers_of(pod_of(cron))[0]
                self.assertIn("--run-id=$(JOB_NAME)", container["args"])
                env = next(entry for entry in container["env"] if entry["name"] == "JOB_NAME")
                self.assertEqual(env["valueFrom"]["fieldRef"]["fieldPath"], "metadata.labels['batch.kubernetes.io/job-name']")
                ignored, *failed = spec["jobTemplate"]["spec"]["podFailurePolicy"]["rules"]
                self.assertEqual(ignored["action"], "Ignore")
                self.assertEqual({rule["onExitCodes"]["containerName"] for rule in failed}, {c["name"] for c in containers_of(pod_of(cron))})
                for rule in failed:
                    self.assertEqual(rule["onExitCodes"]["values"], final)
                self.assertEqual(pod_of(cron)["restartPolicy"], "Never")
        byhand, nightly = of_kind("everything", "CronJob")
        self.assertEqual((byhand["spec"]["suspend"], nightly["spec"]["suspend"]), (True, False))

    def test_a_gate_judges_the_run_of_its_own_job_after_its_end(self):
        nightly = next(c for c in of_kind("production", "CronJob") if c["metadata"]["name"].endswith("nightly"))
        pod = pod_of(nightly)
        self.assertEqual([c["name"] for c in pod["initContainers"]], ["submit"], "runs to its end before the gate starts")
        (gate,) = pod["containers"]
        self.assertEqual(gate["command"] + gate["args"][:2], ["bench-coord", "gate", "$(JOB_NAME)"])
        self.assertTrue(any(arg.startswith("--baseline=") for arg in gate["args"]))
        self.assertEqual([entry["name"] for entry in gate["env"]], [e["name"] for e in pod["initContainers"][0]["env"]])

    def test_archive_and_datasets_reach_those_who_use_them_and_nobody_else(self):
        for name, used in (("everything", True), ("default", False)):
            for where, thing, pod in pods(name):
                for container in containers_of(pod):
                    mine = thing["kind"] == "CronJob" or container["args"][0] == "serve"
                    names = {entry["name"] for entry in container["env"]}
                    wanted = {"BENCH_ARCHIVE_URL", "BENCH_DATASETS_URL"} if used and mine else set()
                    self.assertEqual(names & {"BENCH_ARCHIVE_URL", "BENCH_DATASETS_URL"}, wanted, where)
        policies = {t["metadata"]["name"]: t["spec"] for t in of_kind("everything", "NetworkPolicy")}
        policy = policies["bench-coord-bc-object-store"]
        self.assertEqual(policy["podSelector"]["matchExpressions"][0]["values"], ["coordinator", "run"])
        self.assertEqual([port["port"] for port in policy["egress"][0]["ports"]], [9000])

    def test_everything_is_denied_but_what_is_named(self):
        for name in VALUE_SETS:
            policies = {thing["metadata"]["name"]: thing["spec"] for thing in of_kind(name, "NetworkPolicy")}
            if name == "no-policies":
                self.assertEqual(policies, {})
                continue
            deny = policies["bench-coord-default-deny" if name != "everything" else "bench-coord-bc-default-deny"]
            self.assertEqual(sorted(deny["policyTypes"]), ["Egress", "Ingress"])
            self.assertFalse({"ingress", "egress"} & set(deny))
            for where, thing, _ in pods(name):
                template = thing["spec"].get("jobTemplate", thing)["spec"]["template"] if thing["kind"] == "CronJob" else thing["spec"]["template"]
                self.assertLessEqual(deny["podSelector"]["matchLabels"].items(), template["metadata"]["labels"].items(), where)
        closed = " ".join(thing["metadata"]["name"] for thing in of_kind("no-downloads", "NetworkPolicy"))
        self.assertNotRegex(closed, "providers|downloads")
        self.assertFalse(any(t["metadata"]["name"].endswith("-downloads") for t in of_kind("air-gapped", "NetworkPolicy")))

    def test_selectors_survive_upgrades(self):
        def selectors(things):
            return {label(t): t["spec"]["selector"] for t in things if t["kind"] in ("Deployment", "Service")}

        later = EVERYTHING | {"commonLabels": {"other": "x"}, "image": {"tag": "9.9.9"}}
        self.assertEqual(selectors(documents(render(EVERYTHING))), selectors(documents(render(later, is_upgrade=True))))
        # what 0.1.0 was installed with: an upgrade from it must find the same, whatever else changes
        first = {"app.kubernetes.io/name": "bench-coord", "app.kubernetes.io/instance": "bench-coord"}
        parts = {"Deployment/bench-coord-coordinator": "coordinator", "Deployment/bench-coord-worker-main": "worker-main"}
        found = selectors(objects("default"))
        for name, part in parts.items():
            self.assertEqual(found[name], {"matchLabels": first | {"app.kubernetes.io/component": part}})
        self.assertEqual(found["Service/bench-coord-coordinator"], first | {"app.kubernetes.io/component": "coordinator"})
        for labels in selectors(objects("default")).values():
            labels = labels.get("matchLabels", labels)
            self.assertEqual({key.split("/")[1] for key in labels}, {"name", "instance", "component"})
        for name in VALUE_SETS:
            for thing in of_kind(name, "Deployment"):
                template = thing["spec"]["template"]["metadata"]["labels"]
                self.assertLessEqual(thing["spec"]["selector"]["matchLabels"].items(), template.items())


    def test_a_release_may_be_called_like_a_number(self):
        with helm.Chart.load(str(CHART)) as chart:
            things = documents(chart.render(SECRET, name="7", namespace="bench"))
        for thing in things:
            self.assertEqual(problems(thing, VERSIONS[-1]), [], label(thing))


def workloads(things):
    """Workload to pod templates: what each value of `coordinator`, `worker`, `migrate` and `run` is about."""
    kinds = {"CronJob": "run", "Job": "migrate"}
    found = {}
    for thing in things:
        if pod_of(thing):
            spec = thing["spec"]["jobTemplate"]["spec"] if thing["kind"] == "CronJob" else thing["spec"]
            of_deployment = re.search(r"-(coordinator|meter|worker-\w+)$", thing["metadata"]["name"])
            name = kinds.get(thing["kind"]) or of_deployment[1].split("-")[0]
            found.setdefault(name, []).append(spec["template"])
    return found


class OfUsers(unittest.TestCase):
    """Volumes, containers, labels and annotations that users add."""

    ALL = {
        "podLabels": {"all": "x"},
        "podAnnotations": {"all": "x"},
        "extraVolumes": [{"name": "all", "configMap": {"name": "all"}}],
        "extraVolumeMounts": [{"name": "all", "mountPath": "/all"}],
        "initContainers": [{"name": "all-first", "image": "a:1"}],
        "sidecars": [{"name": "all-beside", "image": "a:1"}],
    }
    OWN = {
        "podLabels": {"own": "y", "all": "y"},
        "podAnnotations": {"own": "y"},
        "extraVolumes": [{"name": "own", "csi": {"driver": "x"}}],
        "extraVolumeMounts": [{"name": "own", "mountPath": "/own", "readOnly": True}, {"name": "all", "mountPath": "/own/all"}],
        "initContainers": [{"name": "own-first", "image": "a:1"}],
        "sidecars": [{"name": "own-beside", "image": "a:1"}],
    }
    SETS = SECRET | METER | {"runs": {"a": RUN, "gated": RUN | {"gate": ["--baseline=last:5"]}}, "workers": {"main": {}, "judges": {"roles": ["judge"]}}}

    def test_what_is_for_all_is_in_all_and_what_is_for_one_in_one(self):
        for chosen in ("coordinator", "worker", "meter", "migrate", "run"):
            own = self.OWN | (METER["meter"] if chosen == "meter" else {})
            templates = workloads(documents(render(self.SETS | self.ALL | {chosen: own})))
            wanted = {"coordinator": 1, "worker": 2, "meter": 1, "migrate": 1, "run": 2}
            self.assertEqual({name: len(found) for name, found in templates.items()}, wanted)
            for name, found in templates.items():
                for template in found:
                    own, pod = name == chosen, template["spec"]
                    with self.subTest(f"{chosen}: {name}"):
                        self.assertEqual(template["metadata"]["labels"]["all"], "y" if own else "x")
                        self.assertEqual(template["metadata"]["annotations"]["all"], "x")
                        for table in ("labels", "annotations"):
                            self.assertEqual("own" in template["metadata"][table], own)
                        self.assertEqual({"all", "own"} & {volume["name"] for volume in pod["volumes"]}, {"all", "own"} if own else {"all"})
                        for container in containers_of(pod):
                            paths = [mount["mountPath"] for mount in container["volumeMounts"] if mount["mountPath"].startswith(("/all", "/own"))]
                            self.assertEqual(paths, ["/all", "/own", "/own/all"] if own else ["/all"])
                        names = [container["name"] for container in every_container_of(pod) if container["name"] not in OURS]
                        self.assertEqual(names, ["all-beside", "own-beside", "all-first", "own-first"] if own else ["all-beside", "all-first"])

    def test_sidecars_start_before_and_end_after_ours(self):
        for name, templates in workloads(documents(render(self.SETS | self.ALL))).items():
            for template in templates:
                pod = template["spec"]
                self.assertTrue(all(container["name"] in OURS for container in pod["containers"]), name)
                sidecar, first, *ours = pod["initContainers"]
                self.assertEqual((sidecar["restartPolicy"], first.get("restartPolicy")), ("Always", None))
                self.assertTrue(all(container["name"] == "submit" for container in ours))

    def test_a_security_context_of_theirs_is_theirs(self):
        theirs = {"name": "a", "image": "a:1", "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}}
        (template,) = workloads(documents(render(SECRET | {"coordinator": {"initContainers": [theirs]}})))["coordinator"]
        self.assertEqual(template["spec"]["initContainers"], [theirs])

    def test_a_variable_of_a_workload_beats_that_of_all_and_none_is_there_twice(self):
        values = {"extraEnv": [{"name": "A", "value": "all"}, {"name": "B", "value": "all"}], "worker": {"extraEnv": [{"name": "A", "value": "own"}]}}
        for name, templates in workloads(documents(render(self.SETS | values))).items():
            for template in templates:
                for container in containers_of(template["spec"]):
                    found = [(entry["name"], entry.get("value")) for entry in container["env"]]
                    self.assertEqual(len({entry for entry, _ in found}), len(found))
                    self.assertIn(("A", "own" if name == "worker" else "all"), found)
                    self.assertIn(("B", "all"), found)
        for name in VALUE_SETS:
            for where, _, pod in pods(name):
                for container in containers_of(pod):
                    names = [entry["name"] for entry in container["env"]]
                    self.assertEqual(len(names), len(set(names)), f"{name}: {where}")

    def test_a_coordinator_of_the_release_before(self):
        values = SECRET | {"image": {"digest": "sha256:" + "1" * 64}, "coordinator": {"imageTag": "0.0.9"}}
        images = {name: {c["image"] for t in found for c in containers_of(t["spec"])} for name, found in workloads(documents(render(values))).items()}
        self.assertEqual(images["coordinator"], {"ghcr.io/bench-coord/bench-coord:0.0.9"})
        self.assertEqual(images["worker"], images["migrate"])
        self.assertTrue(next(iter(images["worker"])).endswith("1" * 64))


class Refusals(unittest.TestCase):
    def refused(self, values, *words):
        with self.assertRaises(helm.HelmError) as caught:
            render(values)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_typos_and_wrong_types(self):
        for wrong, word in [
            ({"replicaCount": 3}, "replicaCount"),
            ({"worker": {"drainSecond": 3}}, "drainSecond"),
            ({"worker": {"drainSeconds": "3m"}}, "drainSeconds"),
            ({"worker": {"roles": ["answer"]}}, "roles"),
            ({"worker": {"scaling": {"mode": "queue"}}}, "mode"),
            ({"workers": {"main": {"replicas": 3}}}, "replicas"),
            ({"workers": {"Main": {}}}, "Main"),
            ({"runs": {"nightly": {"cron": "0 0 * * *"}}}, "cron"),
            ({"runs": {"nightly": {"schedule": "daily"}}}, "schedule"),
            ({"runs": {"much-too-long-a-name": {}}}, "much-too-long-a-name"),
            ({"coordinator": {"replicas": 0}}, "replicas"),
            ({"coordinator": {"port": 80}}, "port"),
            ({"meter": {"port": 80}}, "port"),
            ({"meter": {"url": "meter:7070"}}, "url"),
            ({"image": {"digest": "latest"}}, "digest"),
            ({"runAsUser": 0}, "runAsUser"),
            ({"secrets": {"existingSecret": "a", "storeURL": "x"}}, "storeURL"),
            ({"networkPolicy": {"enabled": "yes"}}, "enabled"),
            ({"networkPolicy": {"workerEgress": [{"from": []}]}}, "from"),
            ({"archive": {"uri": "s3://b"}}, "uri"),
            ({"datasets": {"url": "bucket"}}, "url"),
            ({"objectStore": {"values": {"access-key": "x"}}}, "access-key"),
            ({"runs": {"a": {"gates": []}}}, "gates"),
            # no ports would be all ports
            ({"networkPolicy": {"store": {"ports": []}}}, "ports"),
            ({"networkPolicy": {"collector": {"ports": []}}}, "ports"),
            ({"fullnameOverride": "Bench"}, "fullnameOverride"),
            ({"nameOverride": "1"}, "nameOverride"),
            ({"run": {"timeZone": ""}}, "timeZone"),
            ({"migrate": {"replicas": 1}}, "replicas"),
            ({"extraObjects": [{"kind": "ConfigMap"}]}, "apiVersion"),
            ({"run": {"gate": "--baseline=last:5"}}, "gate"),
            ({"worker": {"scaling": {"fallbackReplicas": "two"}}}, "fallbackReplicas"),
            ({"observability": {"otlp": {"protocol": "http/json"}}}, "protocol"),
        ]:
            with self.subTest(str(wrong)):
                self.refused(SECRET | wrong, word)

    def test_every_table_of_the_schema_is_closed(self):
        import json

        free = {"matchLabels"}

        def walk(node, path):
            if isinstance(node, dict):
                if node.get("properties"):
                    self.assertIs(node.get("additionalProperties"), False, path)
                for key, inner in node.items():
                    if key not in free:
                        walk(inner, f"{path}/{key}")

        walk(json.loads((CHART / "values.schema.json").read_text(encoding="utf-8")), "")

    def test_every_value_is_in_the_schema_and_the_other_way_round(self):
        import json

        schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
        values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))

        def same(node, table, path):
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]] if "$ref" in node else node
            if "properties" in node and isinstance(table, dict):
                known = set(node["properties"]) - ({"global"} if not path else set())
                optional = {"limits", "requests"}
                self.assertEqual(known - optional, set(table) - optional, path)
                for key, inner in table.items():
                    same(node["properties"][key], inner, f"{path}.{key}")

        same(schema, values, "")

    def test_missing_secrets_are_named(self):
        self.refused({}, "secrets.storeUrl")
        self.refused({"secrets": {"storeUrl": "postgres://a", "queueUrl": "amqp://b"}}, "secrets.httpToken")
        self.refused({"secrets": {"storeUrl": "sqlite:x"}}, "storeUrl")
        self.refused({"secrets": {"httpToken": "short"}}, "httpToken")
        urls = {"storeUrl": "postgres://a", "queueUrl": "amqp://b", "httpToken": "0123456789abcdef"}
        self.refused({"secrets": urls} | METER, "secrets.meterKey")
        self.refused({"secrets": urls | {"meterKey": "short"}} | METER, "meterKey")

    def test_keys_and_passwords_in_settings(self):
        for text in ('[judge]\napi_key = "sk-1"\n', "[store]\nurl = 'postgres://u:pw@db/x'\n"):
            self.refused(SECRET | {"settings": text}, "settings")
        render(SECRET | {"settings": '[accounts.eu]\nbase_url = "http://models:8000/v1"\napi_key_env = "EU_KEY"\n'})

    def test_flags_that_the_chart_sets(self):
        for flag in ("--run-id=x", "--pool", "--store=x", "--worker-timeout=3"):
            self.refused(SECRET | {"runs": {"a": {"args": [flag]}}}, "set by the chart")
        self.refused(SECRET | {"runs": {"a": {"gate": ["--store=x"]}}}, "set by the chart")

    def test_fewest_workers_above_most(self):
        for mode in ("keda", "hpa"):
            values = {"workers": {"judges": {"scaling": {"mode": mode, "minReplicas": 21}}}}
            self.refused(SECRET | values, "workers.judges.scaling: minReplicas 21 is above maxReplicas 20")
            render(SECRET | {"worker": {"scaling": {"mode": mode, "minReplicas": 20}}})
        render(SECRET | {"worker": {"scaling": {"mode": "fixed", "minReplicas": 21}}})

    def test_what_would_stand_in_the_way_of_ours(self):
        volume = {"extraVolumes": [{"name": "x", "emptyDir": {}}]}
        for values, words in [
            ({"podLabels": {"app.kubernetes.io/name": "x"}}, "podLabels: app.kubernetes.io/name is set by the chart"),
            ({"worker": {"podLabels": {"bench-coord/role": "x"}}}, "podLabels: bench-coord/role is set by the chart"),
            ({"commonLabels": {"helm.sh/chart": "x"}}, "commonLabels: helm.sh/chart is set by the chart"),
            ({"extraVolumes": [{"name": "home", "emptyDir": {}}]}, "extraVolumes: home is the chart's own"),
            (volume | {"migrate": volume}, "extraVolumes: x is the chart's own, or there twice"),
            (volume | {"extraVolumeMounts": [{"name": "x", "mountPath": "/tmp/"}]}, "extraVolumeMounts: /tmp is the chart's own"),
            (volume | {"extraVolumeMounts": [{"name": "x", "mountPath": "/etc/bench/x"}]}, "extraVolumeMounts: /etc/bench/x is the chart's own"),
            ({"extraVolumeMounts": [{"name": "x", "mountPath": "/x"}]}, "extraVolumeMounts: no volume of extraVolumes is called x"),
            ({"sidecars": [{"name": "worker", "image": "x"}]}, "worker is the chart's own name"),
            ({"sidecars": [{"name": "a", "image": "x"}], "initContainers": [{"name": "a", "image": "x"}]}, "there twice"),
            ({"extraEnv": [{"name": "RUST_LOG", "value": "x"}]}, "extraEnv: RUST_LOG is set by the chart"),
            ({"worker": {"extraEnv": [{"name": "A", "value": "x"}, {"name": "A", "value": "y"}]}}, "extraEnv: A is set by the chart, or named twice"),
            ({"extraVolumes": [{"name": "x"}]}, "minProperties"),
            ({"extraVolumeMounts": [{"name": "x", "mountPath": "x"}]}, "mountPath"),
            ({"sidecars": [{"name": "x"}]}, "image"),
            ({"storage": {"home": "2 GB"}}, "home"),
        ]:
            with self.subTest(words):
                self.refused(SECRET | values, words)

    def test_sidecars_on_a_kubernetes_that_does_not_know_them(self):
        # the engine takes another version to lint only, where a refusal is a line of its log
        values = SECRET | {"sidecars": [{"name": "x", "image": "x:1"}]}
        said = {}
        for version in ("1.28.0", "1.29.0"):
            script = f"import helm_python; helm_python.lint({str(CHART)!r}, {values!r}, kube_version={version!r})"
            said[version] = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr
        self.assertIn("sidecars: Kubernetes 1.29 is needed", said["1.28.0"])
        self.assertNotIn("sidecars", said["1.29.0"])

    def test_two_keys_that_are_the_same(self):
        self.refused(OWN_SECRETS | {"secrets": OWN_SECRETS["secrets"] | {"keys": {"storeUrl": "url", "queueUrl": "url"}}}, "secrets.keys")

    def test_an_ingress_without_host(self):
        self.refused(SECRET | {"ingress": {"enabled": True}}, "ingress.host")


if __name__ == "__main__":
    unittest.main()
