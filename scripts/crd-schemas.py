#!/usr/bin/env python3
"""Writes deploy/tests/schemas: what objects of operators may hold, as closed JSON schemas.

Kubernetes' own schemas come with a Python package; those of custom resources do not. npm packages (MIT) hold TypeScript types that were
made from the published CRDs; their names, types and required fields are taken over here, their texts are not. Run by hand
when another version is to be held to; needs npm and Python. Files without a package (rabbitmq-operator, secrets-store) are written by
hand and say of what.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "deploy" / "tests" / "schemas"
KEDA, MONITORING = "@kubernetes-models/keda", "@kubernetes-models/prometheus-operator"
CERTIFICATES, EXTERNAL, CNPG = (f"@kubernetes-models/{name}" for name in ("cert-manager", "external-secrets", "cloudnative-pg"))
# of large kinds the parts of `spec` that examples may use: what is not here is refused like a typo
PARTS = {
    "Issuer": ["ca", "selfSigned"],
    "Cluster": [
        "instances",
        "imageName",
        "storage",
        "walStorage",
        "resources",
        "bootstrap.initdb",
        "certificates",
        "postgresql.parameters",
        "postgresql.synchronous",
    ],
}
# file: (package, version, folder of the API, kinds); the oldest and the newest that packages are made of
SOURCES = {
    "keda-2.10": (KEDA, "0.4.2", "keda.sh/v1alpha1", ["ScaledObject", "TriggerAuthentication"]),
    "keda-newest": (KEDA, "2.0.0", "keda.sh/v1alpha1", ["ScaledObject", "TriggerAuthentication"]),
    "prometheus-operator-0.65": (
        MONITORING,
        "4.4.4",
        "monitoring.coreos.com/v1",
        ["PodMonitor", "ServiceMonitor", "PrometheusRule"],
    ),
    "prometheus-operator-0.90": (
        MONITORING,
        "5.0.1",
        "monitoring.coreos.com/v1",
        ["PodMonitor", "ServiceMonitor", "PrometheusRule"],
    ),
    "cert-manager-1.11": (CERTIFICATES, "4.4.4", "cert-manager.io/v1", ["Certificate", "Issuer"]),
    "cert-manager-1.20": (CERTIFICATES, "5.0.1", "cert-manager.io/v1", ["Certificate", "Issuer"]),
    # the first with v1; the package before it has v1beta1 alone, which operators of today no longer serve
    "external-secrets-newest": (EXTERNAL, "2.0.0", "external-secrets.io/v1", ["ExternalSecret"]),
    "cloudnative-pg-1.24": (CNPG, "0.1.4", "postgresql.cnpg.io/v1", ["Cluster"]),
    "cloudnative-pg-1.29": (CNPG, "1.0.0", "postgresql.cnpg.io/v1", ["Cluster"]),
}
TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z_$][\w$.]*|-?\d+|[{}\[\]<>():;,|?&])')


class Types:
    """The interface of one file, and of those that it imports."""

    def __init__(self, path):
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
        self.folder = path.parent
        self.imports = {
            name.strip(): source
            for names, source in re.findall(r'import \{([^}]*)\} from "([^"]+)"', text)
            for name in names.split(",")
        }
        body = re.search(r"export interface \w+ (?:extends \w+ )?(\{.*?\})\s*\nexport", text, re.S)
        alias = re.search(r"export (?:declare )?type \w+ = (.*?);\n", text, re.S)
        if not body and not alias:
            raise SystemExit(f"{path}: no interface")
        self.tokens = TOKEN.findall((body or alias)[1])
        self.at = 0

    def next(self, wanted=None):
        token = self.tokens[self.at]
        if wanted and token != wanted:
            raise SystemExit(f"{self.folder}: {wanted} expected, {self.tokens[self.at - 5 : self.at + 5]}")
        self.at += 1
        return token

    def peek(self):
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def union(self):
        parts = [self.one()]
        while self.peek() == "|":
            self.next()
            parts.append(self.one())
        constants = [part["const"] for part in parts if "const" in part]
        if len(constants) == len(parts):
            return {"enum": constants}
        return parts[0] if len(parts) == 1 else {"anyOf": parts}

    def one(self):
        token = self.next()
        if token == "{":
            made = self.table()
        elif token.startswith('"'):
            made = {"const": json.loads(token)}
        elif token in ("string", "number", "boolean", "null"):
            made = {"type": token}
        elif token == "Array":
            self.next("<")
            made = {"type": "array", "items": self.union()}
            self.next(">")
        elif token == "(":
            made = self.union()
            self.next(")")
        else:
            made = self.imported(token)
        while self.peek() == "[":
            self.next("[")
            self.next("]")
            made = {"type": "array", "items": made}
        if self.peek() == "&":
            # `string & (A | B)`: the narrower type
            self.next()
            return self.one()
        return made

    def table(self):
        properties, required, others = {}, [], False
        while self.peek() != "}":
            name = self.next()
            if name == "[":
                # `[key: string]: T`
                self.next()
                for wanted in (":", "string", "]", ":"):
                    self.next(wanted)
                others = self.union()
            else:
                optional = self.peek() == "?"
                if optional:
                    self.next()
                self.next(":")
                name = json.loads(name) if name.startswith('"') else name
                properties[name] = self.union()
                if not optional:
                    required.append(name)
            if self.peek() == ";":
                self.next()
        self.next("}")
        made = {"type": "object", "additionalProperties": others}
        return made | ({"properties": properties} if properties else {}) | ({"required": required} if required else {})

    def imported(self, name):
        source = self.imports.get(name.split("[")[0], "")
        if not source.startswith("."):
            return {}  # Kubernetes' own types: metadata, behaviour of autoscalers
        file = re.sub(r"\.js$", "", source) + ".d.ts"
        return Types(self.folder / file).union()


def pruned(schema, paths):
    """A table's schema with these parts alone."""
    made = schema | {"properties": {}}
    for name in dict.fromkeys(path.split(".")[0] for path in paths):
        inner = [path.partition(".")[2] for path in paths if path.split(".")[0] == name]
        kept = schema["properties"][name]
        made["properties"][name] = kept if "" in inner else pruned(kept, inner)
    if set(made.get("required", [])) - set(made["properties"]):
        raise SystemExit(f"required, but not kept: {made['required']}")
    return made


def pack(name, version, folder):
    done = subprocess.run(["npm", "pack", "--silent", f"{name}@{version}"], cwd=folder, capture_output=True, text=True, check=True)
    subprocess.run(["tar", "-xzf", done.stdout.split()[-1]], cwd=folder, check=True)
    return Path(folder) / "package"


def main():
    OUT.mkdir(exist_ok=True)
    for name, (package, version, api, kinds) in SOURCES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = pack(package, version, folder) / api
            schemas = {kind: Types(root / f"{kind}.d.ts").union() for kind in kinds}
            for kind, schema in schemas.items():
                schema["properties"].pop("status", None)  # written by operators, never by a chart
                if kind in PARTS:
                    schema["properties"]["spec"] = pruned(schema["properties"]["spec"], PARTS[kind])
        about = f"made by scripts/crd-schemas.py of {package}@{version} (npm, MIT)"
        text = json.dumps({"$comment": about, "apiVersion": api, "kinds": schemas}, indent=1)
        (OUT / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        print(f"{name}: {', '.join(kinds)}", file=sys.stderr)


if __name__ == "__main__":
    main()
