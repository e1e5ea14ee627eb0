"""Every value of the chart, one at a time: it changes what is rendered, and Kubernetes takes the result."""

import copy
import importlib.util
import unittest

import yaml
from binaries import ROOT
from chart import CHART, METER, OWN_SECRETS, RUN, SECRET, documents, label, render
from schemas import problems

PEER = [{"podSelector": {"matchLabels": {"a": "b"}}}]
ENV = [{"name": "A", "value": "b"}]
RESOURCES = {"requests": {"cpu": "7m", "memory": "7Mi"}, "limits": {"memory": "77Mi"}}
# where a value can be seen at all
INGRESS = SECRET | {"ingress": {"enabled": True, "host": "h.example.org"}}
KEDA = SECRET | {"worker": {"scaling": {"mode": "keda"}}}
HPA = SECRET | {"worker": {"scaling": {"mode": "hpa"}}}
SEEN = SECRET | {"observability": {"enabled": True, "otlp": {"endpoint": "http://c:4317"}}}
RUNS = SECRET | {"runs": {"a": RUN}}
NIGHTLY = SECRET | {"runs": {"a": RUN}, "run": {"schedule": "0 1 * * *"}}
METERED = SECRET | METER
ARCHIVE = SECRET | {"archive": {"url": "s3://b/p"}}
VOLUMES = [{"name": "ca", "configMap": {"name": "ca"}}]
MOUNTS = [{"name": "ca", "mountPath": "/etc/ca"}]
CONTAINERS = [{"name": "helper", "image": "helper:1"}]
# what every workload has, and all of them together: value by name, and what is set around it
PODS = {
    "podLabels": ({"a": "b"}, {}),
    "podAnnotations": ({"a": "b"}, {}),
    "extraVolumes": (VOLUMES, {}),
    "extraVolumeMounts": (MOUNTS, {"extraVolumes": VOLUMES}),
    "initContainers": (CONTAINERS, {}),
    "sidecars": (CONTAINERS, {}),
}
PLACES = {
    "nodeSelector": ({"a": "b"}, {}),
    "tolerations": ([{"operator": "Exists"}], {}),
    "affinity": ({"nodeAffinity": {}}, {}),
    "priorityClassName": ("high", {}),
}
WORKLOADS = ("coordinator", "worker", "meter", "migrate", "run")

# dotted name: (another value, what else is set)
OPTIONS = {
    "nameOverride": ("other", SECRET),
    "fullnameOverride": ("other", SECRET),
    "commonLabels": ({"a": "b"}, SECRET),
    "clusterDomain": ("other.local", KEDA),
    "image.repository": ("registry.example.org/bench", SECRET),
    "image.tag": ("1.2.3", SECRET),
    "image.digest": ("sha256:" + "1" * 64, SECRET),
    "image.pullPolicy": ("Always", SECRET),
    "imagePullSecrets": (["registry"], SECRET),
    "secrets.existingSecret": ("mine", SECRET),
    "secrets.storeUrlSecret": ("db-app", SECRET),
    "secrets.storeUrlSuffix": ("?sslmode=verify-full", SECRET),
    "secrets.queueUrlSecret": ("mq-default-user", SECRET),
    "secrets.queueUrlSuffix": ("%2f", SECRET),
    "secrets.coordinatorSecret": ("mine", SECRET),
    "secrets.runSecret": ("mine", RUNS),
    "secrets.workerSecret": ("mine", SECRET),
    "secrets.migrateSecret": ("mine", SECRET),
    "migrate.roles": ("bench", SECRET),
    "secrets.keys.storeUrl": ("STORE", SECRET),
    "secrets.keys.queueUrl": ("QUEUE", SECRET),
    "secrets.keys.httpToken": ("TOKEN", SECRET),
    "secrets.keys.meterKey": ("METER", METERED),
    "secrets.meterKey": ("another-meter-key-0123456789", OWN_SECRETS | METER),
    "secrets.storeUrl": ("postgres://other/bench", OWN_SECRETS),
    "secrets.queueUrl": ("amqps://other/bench", OWN_SECRETS),
    "secrets.httpToken": ("another-token-0123456789", OWN_SECRETS),
    "accounts.existingSecret": ("mine", SECRET),
    "accounts.values": ({"KEY": "v"}, SECRET),
    "settings": ('[models]\ntimeout = "60s"\n', SECRET),
    "logLevel": ("debug", SECRET),
    "extraEnv": (ENV, SECRET),
    "storage.home": ("9Gi", SECRET),
    "storage.tmp": ("9Gi", SECRET),
    "serviceAccount.create": (False, SECRET),
    "serviceAccount.name": ("mine", SECRET),
    "serviceAccount.annotations": ({"a": "b"}, SECRET),
    "coordinator.replicas": (1, SECRET),
    "coordinator.imageTag": ("0.0.9", SECRET),
    "coordinator.port": (9000, SECRET),
    "coordinator.resources": (RESOURCES, SECRET),
    "coordinator.podDisruptionBudget": (False, SECRET),
    "coordinator.extraEnv": (ENV, SECRET),
    "service.type": ("NodePort", SECRET),
    "service.annotations": ({"a": "b"}, SECRET),
    "ingress.enabled": (True, SECRET | {"ingress": {"host": "h"}}),
    "ingress.className": ("nginx", INGRESS),
    "ingress.annotations": ({"a": "b"}, INGRESS),
    "ingress.host": ("other.example.org", INGRESS),
    "ingress.tlsSecret": ("tls", INGRESS),
    "worker.pool": ("eu", SECRET),
    "worker.roles": (["judge"], SECRET),
    "worker.concurrency": (7, SECRET),
    "worker.drainSeconds": (77, SECRET),
    **{
        f"worker.allow.{kind}": (["a"], SECRET)
        for kind in ("systems", "commands", "images", "variables", "files", "hosts", "secrets")
    },
    "worker.resources": (RESOURCES, SECRET),
    "worker.podDisruptionBudget": (False, SECRET),
    "worker.extraEnv": (ENV, SECRET),
    "worker.scaling.mode": ("keda", SECRET),
    "worker.scaling.replicas": (7, SECRET),
    "worker.scaling.minReplicas": (3, KEDA),
    "worker.scaling.maxReplicas": (33, HPA),
    "worker.scaling.stabilizationSeconds": (77, KEDA),
    "worker.scaling.pollingSeconds": (7, KEDA),
    "worker.scaling.fallbackReplicas": (None, KEDA),
    "worker.scaling.cpuPercent": (55, HPA),
    "workers": ({"judges": {"roles": ["judge"]}}, SECRET),
    "meter.enabled": (True, SECRET),
    "meter.replicas": (1, METERED),
    "meter.port": (9000, METERED),
    "meter.url": ("https://meter.example.org", METERED),
    "meter.service.type": ("LoadBalancer", METERED),
    "meter.service.annotations": ({"a": "b"}, METERED),
    "meter.resources": (RESOURCES, METERED),
    "meter.podDisruptionBudget": (False, METERED),
    "meter.extraEnv": (ENV, METERED),
    "migrate.enabled": (False, SECRET),
    "migrate.backoffLimit": (1, SECRET),
    "migrate.activeDeadlineSeconds": (77, SECRET),
    "migrate.resources": (RESOURCES, SECRET),
    "migrate.serviceAccountName": ("mine", SECRET),
    "migrate.extraEnv": (ENV, SECRET),
    "runs": ({"b": RUN}, SECRET),
    "run.schedule": ("0 1 * * *", RUNS),
    "run.timeZone": ("Europe/Berlin", RUNS),
    "run.args": (["--dataset=locomo-sim"], SECRET | {"runs": {"a": {}}}),
    "run.gate": (["--baseline=last:5"], RUNS),
    "run.pool": ("eu", RUNS),
    "run.suspend": (True, NIGHTLY),
    "run.workerTimeoutSeconds": (77, RUNS),
    "run.backoffLimit": (1, RUNS),
    "run.activeDeadlineSeconds": (77, RUNS),
    "run.history": (1, RUNS),
    "run.ttlSecondsAfterFinished": (77, RUNS),
    "run.resources": (RESOURCES, RUNS),
    "run.extraEnv": (ENV, RUNS),
    "datasets.existingClaim": ("data", SECRET),
    "datasets.url": ("s3://b/d", SECRET),
    "archive.url": ("s3://b/a", SECRET),
    "objectStore.existingSecret": ("mine", ARCHIVE),
    "objectStore.values": ({"AWS_REGION": "r"}, ARCHIVE),
    "observability.enabled": (True, SECRET),
    "observability.monitors": (False, SEEN),
    "observability.interval": ("30s", SEEN),
    "observability.rules": (False, SEEN),
    "observability.labels": ({"a": "b"}, SEEN),
    "observability.dashboards": (False, SEEN),
    "observability.dashboardLabels": ({"a": "b"}, SEEN),
    "observability.otlp.endpoint": ("http://c:4317", SECRET),
    "observability.otlp.protocol": ("http/protobuf", SEEN),
    "observability.otlp.headersSecret": ("mine", SEEN),
    "networkPolicy.enabled": (False, SECRET),
    "networkPolicy.coordinatorFrom": (PEER, SECRET),
    "networkPolicy.meterFrom": (PEER, METERED),
    "networkPolicy.kedaNamespace": ("other", KEDA),
    "networkPolicy.ingressNamespace": ("other", INGRESS),
    "networkPolicy.store.to": (PEER, SECRET),
    "networkPolicy.store.ports": ([6432], SECRET),
    "networkPolicy.queue.to": (PEER, SECRET),
    "networkPolicy.queue.ports": ([5671], SECRET),
    "networkPolicy.providers.to": (PEER, SECRET),
    "networkPolicy.providers.ports": ([8000], SECRET),
    "networkPolicy.prometheusNamespace": ("other", SEEN),
    "networkPolicy.collector.to": (PEER, SEEN),
    "networkPolicy.collector.ports": ([4317], SEEN),
    "networkPolicy.objectStore.to": (PEER, ARCHIVE),
    "networkPolicy.objectStore.ports": ([9000], ARCHIVE),
    "networkPolicy.extraEgress": ([{"to": PEER, "ports": [{"port": 80, "protocol": "TCP"}]}], SECRET),
    "networkPolicy.workerEgress": ([{"to": PEER, "ports": [{"port": 80, "protocol": "TCP"}]}], SECRET),
    "networkPolicy.downloads.enabled": (False, SECRET),
    "runAsUser": (1000, SECRET),
    "extraObjects": ([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}], SECRET),
}
OPTIONS |= {name: (value, RUNS | around) for name, (value, around) in PODS.items()}
OPTIONS |= {
    f"{workload}.{name}": (value, RUNS | {workload: around | (METER["meter"] if workload == "meter" else {})})
    for workload in WORKLOADS
    for name, (value, around) in (PODS | PLACES).items()
}


def documented():
    spec = importlib.util.spec_from_file_location("helm_readme", ROOT / "scripts" / "helm-readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name for name, *_ in module.rows((CHART / "values.yaml").read_text(encoding="utf-8"))}


def default_of(name):
    table = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for part in name.split("."):
        table = table[part]
    return table


def with_option(values, name, value):
    values = copy.deepcopy(values)
    table = values
    *path, last = name.split(".")
    for part in path:
        table = table.setdefault(part, {})
    table[last] = value
    return values


class Options(unittest.TestCase):
    def test_every_documented_value_is_here(self):
        self.assertEqual(documented(), set(OPTIONS))

    def test_each_list_and_table_may_be_taken_away(self):
        for name, (_, base) in OPTIONS.items():
            if default_of(name) in ([], {}):
                with self.subTest(name):
                    self.assertTrue(documents(render(with_option(base, name, None))))

    def test_each_changes_what_is_rendered_and_stays_valid(self):
        bases = {}
        for name, (value, base) in OPTIONS.items():
            before = bases.setdefault(id(base), None) or documents(render(base))
            bases[id(base)] = before
            with self.subTest(name):
                after = documents(render(with_option(base, name, value)))
                self.assertNotEqual(before, after, "has no effect")
                # what the other has too is looked at with the sets of values
                for thing in after:
                    if thing not in before:
                        self.assertEqual(problems(thing, "1.34"), [], label(thing))


if __name__ == "__main__":
    unittest.main()
