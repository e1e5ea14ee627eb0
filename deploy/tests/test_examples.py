"""Files under examples/: values that render, objects that the operators take, and nothing that a pod reads is missing between them."""

import copy
import re
import unittest

import yaml
from binaries import unknown_settings
from chart import CHART, EXAMPLES, VALUE_SETS, containers_of, documents, label, objects, pod_of, render
from schemas import FOLDER, custom, problems

OBJECTS = {path.stem: list(yaml.safe_load_all(path.read_text(encoding="utf-8"))) for path in (CHART / "examples/objects").glob("*.yaml")}
# examples of before objects, whose secrets are made by hand: their comments do not say how
BY_HAND = {"small", "production", "air-gapped"}


def header(name):
    """The comments that a file begins with, without line ends in commands."""
    text = (CHART / "examples" / f"{name}.yaml").read_text(encoding="utf-8")
    return re.sub(r"\\\n# *", "", re.match(r"(?:#.*\n)+", text)[0])


def written_by(thing):
    """Secrets that an operator makes of an object: name to keys."""
    name, spec = thing["metadata"]["name"], thing["spec"]
    if thing["kind"] == "Cluster":
        return {f"{name}-app": {"uri", "username", "password", "host", "dbname"}, f"{name}-ca": {"ca.crt"}}
    if thing["kind"] == "RabbitmqCluster":
        return {f"{name}-default-user": {"connection_string", "username", "password", "host", "port"}}
    if thing["kind"] == "Certificate":
        return {spec["secretName"]: {"ca.crt", "tls.crt", "tls.key"}}
    if thing["kind"] == "ExternalSecret":
        made = spec["target"].get("template", {}).get("data") or [entry["secretKey"] for entry in spec["data"]]
        return {spec["target"]["name"]: set(made)}
    if thing["kind"] == "SecretProviderClass":
        return {made["secretName"]: {entry["key"] for entry in made["data"]} for made in spec.get("secretObjects", [])}
    return {}


def applied(name):
    return [thing for found in re.findall(r"-f examples/objects/([\w-]+)\.yaml", header(name)) for thing in OBJECTS[found]]


def at_hand(name):
    """What is there before the chart: secrets and config maps, name to keys; and names of secret provider classes."""
    found = {}
    for thing in applied(name):
        found |= written_by(thing)
    for made, rest in re.findall(r"kubectl create (?:secret generic|configmap) (\S+) (.*)", header(name)):
        keys = re.findall(r"--from-literal=([\w.-]+)=|--from-file=([\w.-]+)", rest)
        found[made] = {literal or file for literal, file in keys}
    return found, {thing["metadata"]["name"] for thing in applied(name) if thing["kind"] == "SecretProviderClass"}


def missing(name, things):
    """What pods name that is neither at hand nor made by the chart."""
    known, classes = at_hand(name)
    for thing in things:
        if thing["kind"] in ("Secret", "ConfigMap"):
            known = known | {thing["metadata"]["name"]: set(thing.get("stringData", {})) | set(thing.get("data", {}))}
    gaps = []
    for thing in things:
        pod = pod_of(thing)
        for container in containers_of(pod) if pod else []:
            refs = [e["valueFrom"]["secretKeyRef"] for e in container.get("env", []) if "secretKeyRef" in e.get("valueFrom", {})]
            gaps += [f"{label(thing)}: {ref}" for ref in refs if ref["key"] not in known.get(ref["name"], ())]
            gaps += [f"{label(thing)}: {ref}" for ref in container.get("envFrom", []) if ref["secretRef"]["name"] not in known]
        for volume in pod["volumes"] if pod else []:
            source = volume.get("secret") or volume.get("configMap")
            if source:
                keys = known.get(source.get("secretName") or source.get("name"))
                if keys is None or not {item["key"] for item in source.get("items", [])} <= keys:
                    gaps.append(f"{label(thing)}: {volume}")
            if "csi" in volume and volume["csi"]["volumeAttributes"]["secretProviderClass"] not in classes:
                gaps.append(f"{label(thing)}: {volume}")
    return gaps


def mounted(pod, container, path):
    """Whether a file lies in a mount of the container."""
    folder = path.rsplit("/", 1)[0]
    return any(mount["mountPath"] == folder for mount in container["volumeMounts"])


class Examples(unittest.TestCase):
    def test_all_are_here(self):
        self.assertLessEqual(BY_HAND | {"cert-manager", "csi-secrets", "external-secrets", "operators", "private-ca"}, set(EXAMPLES))
        named = {found for name in EXAMPLES for found in re.findall(r"-f examples/objects/([\w-]+)\.yaml", header(name))}
        self.assertEqual(named, set(OBJECTS))
        readme = (CHART / "README.md").read_text(encoding="utf-8")
        for name in EXAMPLES:
            self.assertIn(f"`{name}.yaml`", readme)

    def test_operators_take_every_object(self):
        seen = set()
        for name, things in OBJECTS.items():
            for thing in things:
                seen.add(thing["kind"])
                with self.subTest(f"{name}: {label(thing)}"):
                    self.assertTrue(custom(thing["apiVersion"]))
                    self.assertEqual(problems(thing, "1.34"), [])
        self.assertEqual(seen, {"Cluster", "RabbitmqCluster", "Issuer", "Certificate", "ExternalSecret", "SecretProviderClass"})

    def test_the_schemas_find_mistakes(self):
        for name, number, path, value in [
            ("cloudnative-pg", 0, ["spec", "instance"], 3),
            ("cloudnative-pg", 0, ["spec", "storage", "size"], 20),
            ("cloudnative-pg", 0, ["spec", "postgresql", "synchronous", "method"], "all"),
            ("rabbitmq-operator", 0, ["spec", "tls", "secret"], "x"),
            ("rabbitmq-operator", 0, ["spec", "replicas"], "3"),
            ("cert-manager", 0, ["spec", "selfsigned"], {}),
            ("cert-manager", 3, ["spec", "dnsNames"], "x"),
            ("cert-manager", 4, ["spec", "usages"], ["client"]),
            ("external-secrets", 0, ["spec", "target", "template", "engine"], "v2"),
            ("external-secrets", 0, ["spec", "data", 0, "remoteRef", "keys"], "x"),
            ("csi-secrets", 0, ["spec", "parameters", "objects"], []),
            ("csi-secrets", 0, ["spec", "secretObjects", 0, "name"], "x"),
        ]:
            thing = copy.deepcopy(OBJECTS[name][number])
            *way, last = path
            table = thing
            for part in way:
                table = table[part]
            table[last] = value
            with self.subTest(f"{name}: {path}"):
                self.assertNotEqual(problems(thing, "1.34"), [])

    def test_every_schema_says_where_it_is_from(self):
        for path in FOLDER.glob("*.json"):
            self.assertRegex(path.read_text(encoding="utf-8"), r'"\$comment": "(made by scripts/crd-schemas.py of \S+@|written by hand: .*commit \w{8})')

    def test_what_pods_read_is_there(self):
        for name in set(EXAMPLES) - BY_HAND:
            with self.subTest(name):
                self.assertEqual(missing(name, objects(name)), [])
        # and the test would see it
        self.assertIn("uri", str(missing("external-secrets", documents(render(VALUE_SETS["operators"])))))
        self.assertIn("bench-accounts", str(missing("private-ca", documents(render(VALUE_SETS["csi-secrets"])))))

    def test_files_that_urls_and_settings_name_are_mounted(self):
        for name in set(EXAMPLES) - BY_HAND:
            values = VALUE_SETS[name]
            self.assertEqual(unknown_settings(values.get("settings", "")), set(), name)
            text = header(name) + str(values["secrets"])
            tls = re.search(r"tls=(/\S+)", text)
            urls = set(re.findall(r"(?:sslrootcert|sslcert|sslkey|cacertfile|certfile|keyfile)=([\w/.$-]+)", text))
            urls = {url.replace("$tls", tls[1] if tls else "") for url in urls}
            keys = set(re.findall(r'api_key_file = "([^"]+)"', values.get("settings", "")))
            checked = 0
            for thing in objects(name):
                pod = pod_of(thing)
                for container in pod["containers"] if pod else []:
                    worker = container["command"] == ["bench-worker"]
                    for path in urls | (keys if worker else set()):
                        checked += 1
                        self.assertTrue(mounted(pod, container, path), f"{name}: {label(thing)} {path}")
                    for path in () if worker else keys:
                        self.assertFalse(mounted(pod, container, path), f"{name}: {label(thing)} has the key {path}")
            self.assertTrue(checked or name == "external-secrets", name)

    def test_connections_are_checked_in_full(self):
        for name in set(EXAMPLES) - BY_HAND - {"csi-secrets"}:
            text = header(name) + str(VALUE_SETS[name]) + str(applied(name))
            self.assertIn("sslmode=verify-full", text, name)
            self.assertNotRegex(text, r"amqp://|sslmode=(?!verify-full)")

    def test_operators_urls_become_ours(self):
        seen = 0
        for thing in objects("operators"):
            for container in containers_of(pod_of(thing)) if pod_of(thing) else []:
                env = {entry["name"]: entry for entry in container["env"]}
                order = list(env)
                for ours, theirs, key, end in (
                    ("BENCH_STORE_URL", "SECRET_STORE_URL", "uri", "?sslmode=verify-full&sslrootcert=/etc/bench-store/ca.crt"),
                    ("BENCH_QUEUE_URL", "SECRET_QUEUE_URL", "connection_string", "%2f?cacertfile=/etc/bench-queue/ca.crt"),
                ):
                    self.assertEqual(env[ours]["value"], f"$({theirs}){end}")
                    self.assertEqual(env[theirs]["valueFrom"]["secretKeyRef"]["key"], key)
                    self.assertLess(order.index(theirs), order.index(ours), "Kubernetes expands what stands before")
                    seen += 1
                # no authority's key is mounted beside its certificate
                for volume in pod_of(thing)["volumes"]:
                    if "secret" in volume:
                        self.assertEqual([item["key"] for item in volume["secret"]["items"]], ["ca.crt"])
        self.assertGreaterEqual(seen, 6)
        # the broker's certificate is for the name in the operator's URL
        (names,) = (t["spec"]["dnsNames"] for t in OBJECTS["cert-manager"] if t["metadata"]["name"] == "bench-mq-tls")
        self.assertIn("bench-mq.bench.svc", names)


if __name__ == "__main__":
    unittest.main()
