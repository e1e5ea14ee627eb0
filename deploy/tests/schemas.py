"""What Kubernetes and its operators would say of an object: the published schemas, closed, so that typos are found."""

import json
from functools import cache
from pathlib import Path

import jsonschema
import kubernetes_validate

FOLDER = Path(__file__).parent / "schemas"


@cache
def custom(api):
    """Schemas of an API's kinds, for every version of the operator that is at hand."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
    return [file["kinds"] for file in files if file["apiVersion"] == api]


def problems(thing, version):
    """What is wrong with an object, as Kubernetes of this version and all versions of operators see it."""
    if versions := custom(thing["apiVersion"]):
        return [
            f"{error.json_path}: {error.message}"
            for kinds in versions
            for error in jsonschema.Draft202012Validator(kinds[thing["kind"]]).iter_errors(thing)
        ]
    try:
        kubernetes_validate.validate(thing, version, strict=True)
    except kubernetes_validate.ValidationError as error:
        return [str(error)]
    return []
