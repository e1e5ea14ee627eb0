"""Renders the chart with Helm's own engine."""

from functools import cache

import helm_python as helm
import yaml
from binaries import ROOT

CHART = ROOT / "helm" / "bench-coord"
SECRET = {"secrets": {"existingSecret": "bench"}}
# found nowhere but in Secrets
SENTINELS = {
    "storeUrl": "postgres://u:sentinel-store@db/bench",
    "queueUrl": "amqp://u:sentinel-queue@mq/bench",
    "httpToken": "sentinel-token-0123456789",
    "meterKey": "sentinel-meter-0123456789",
}
OWN_SECRETS = {"secrets": SENTINELS, "accounts": {"values": {"OPENAI_API_KEY": "sentinel-key"}}}
OURS = ("coordinator", "worker", "meter", "migrate", "submit", "gate")
METER = {"meter": {"enabled": True}}
RUN = {"args": ["--dataset=locomo", "--preset=fair"]}


def example(name):
    return yaml.safe_load((CHART / "examples" / f"{name}.yaml").read_text(encoding="utf-8"))


def scaling(mode, **more):
    return SECRET | {"worker": {"scaling": {"mode": mode, **more}}}


EVERYTHING = OWN_SECRETS | {
    "nameOverride": "bc",
    "commonLabels": {"team": "evals"},
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": ["registry"],
    "settings": '[models]\ntimeout = "60s"\n',
    "extraEnv": [{"name": "NO_COLOR", "value": "1"}],
    "podLabels": {"tier": "evals"},
    "podAnnotations": {"a": "all"},
    "extraVolumes": [{"name": "authority", "configMap": {"name": "authority"}}],
    "extraVolumeMounts": [{"name": "authority", "mountPath": "/etc/authority", "readOnly": True}],
    "initContainers": [{"name": "first", "image": "helper:1"}],
    "sidecars": [{"name": "proxy", "image": "proxy:1", "securityContext": {"runAsUser": 7}}],
    "serviceAccount": {"annotations": {"a": "b"}},
    "service": {"annotations": {"a": "b"}},
    "coordinator": {"replicas": 3, "priorityClassName": "high", "nodeSelector": {"pool": "a"}, "podAnnotations": {"a": "b"}},
    "ingress": {"enabled": True, "className": "nginx", "host": "bench.example.org", "tlsSecret": "tls", "annotations": {"a": "b"}},
    "worker": {
        "concurrency": 32,
        "drainSeconds": 400,
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "extraEnv": [{"name": "BENCH_JUDGE_BASE_URL", "value": "http://judge/v1"}],
    },
    "workers": {
        "main": {"scaling": {"mode": "keda"}},
        "judges": {"pool": "eu", "roles": ["judge"], "podDisruptionBudget": False, "scaling": {"mode": "hpa", "minReplicas": 2}},
        "fixed": {"scaling": {"replicas": 0}},
    },
    "meter": {"enabled": True, "url": "https://meter.example.org", "service": {"annotations": {"a": "b"}}},
    "runs": {"nightly": RUN | {"schedule": "15 2 * * *", "activeDeadlineSeconds": 7200}, "byhand": RUN | {"pool": "eu"}},
    "datasets": {"existingClaim": "data", "url": "s3://bucket/datasets"},
    "archive": {"url": "s3://bucket/results"},
    "objectStore": {"values": {"AWS_SECRET_ACCESS_KEY": "sentinel-bucket"}},
    "observability": {
        "enabled": True,
        "labels": {"release": "prometheus", "team": "watchers"},
        "otlp": {"endpoint": "http://collector.monitoring:4317", "headersSecret": "bench"},
    },
    "networkPolicy": {
        "coordinatorFrom": [{"podSelector": {"matchLabels": {"app": "dashboard"}}}],
        "meterFrom": [{"podSelector": {"matchLabels": {"app": "memory"}}}],
        "objectStore": {"ports": [9000]},
        "workerEgress": [{"to": [{"podSelector": {"matchLabels": {"app": "memory"}}}]}],
    },
    "extraObjects": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-x"}, "data": {"a": "b"}}],
}

EXAMPLES = sorted(path.stem for path in (CHART / "examples").glob("*.yaml"))

VALUE_SETS = {name: example(name) for name in EXAMPLES} | {
    "default": SECRET,
    "everything": EVERYTHING,
    "own-secrets": OWN_SECRETS,
    "keda": scaling("keda"),
    "keda-never-zero": scaling("keda", minReplicas=1),
    "hpa": scaling("hpa"),
    "fixed": scaling("fixed", replicas=7),
    "meter": SECRET | METER,
    "meter-own-secrets": OWN_SECRETS | METER,
    "no-migration": SECRET | {"migrate": {"enabled": False}},
    "no-policies": SECRET | {"networkPolicy": {"enabled": False}},
    "no-account": SECRET | {"serviceAccount": {"create": False, "name": "theirs"}},
    "no-downloads": SECRET | {"networkPolicy": {"downloads": {"enabled": False}, "providers": {"ports": []}}},
    "observed": SECRET | {"observability": {"enabled": True, "dashboards": False}},
    "template-run": SECRET | {"runs": {"fair": RUN}},
}


def render(values, **options):
    with helm.Chart.load(str(CHART)) as chart:
        return chart.render(values, name="bench-coord", namespace="bench", **options)


class Strict(yaml.CSafeLoader):
    """Refuses a key that is there twice, as Kubernetes does."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.YAMLError(f"a key twice: {sorted(keys)}{node.start_mark}")
        return super().construct_mapping(node, deep)


def documents(rendered):
    texts = (text for path, text in sorted(rendered.items()) if not path.endswith("NOTES.txt"))
    return [document for text in texts for document in yaml.load_all(text, Strict) if document]


@cache
def objects(name):
    """Objects of a value set."""
    return documents(render(VALUE_SETS[name]))


def pod_of(thing):
    """Pod spec of an object that makes pods, else None."""
    kind, spec = thing["kind"], thing.get("spec", {})
    if kind == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    return spec["template"]["spec"] if kind in ("Deployment", "Job", "CronJob") else None


def containers_of(pod):
    """Our containers of a pod spec, in the order in which they run."""
    return [container for container in every_container_of(pod) if container["name"] in OURS]


def every_container_of(pod):
    """Ours and those that users add."""
    return pod.get("initContainers", []) + pod["containers"]


def label(thing):
    return f"{thing['kind']}/{thing['metadata']['name']}"
