#!/usr/bin/env python3
"""Writes the table of values in helm/bench-coord/README.md from the comments of values.yaml.

`-- ` opens the comment of the line below it; a value that is a table without such a comment is a section. `--check` changes
nothing and fails when the table is not current. Needs nothing but Python.
"""

import re
import sys
from pathlib import Path

CHART = Path(__file__).resolve().parent.parent / "helm" / "bench-coord"
BEGIN, END = "<!-- values: made by scripts/helm-readme.py -->", "<!-- end of values -->"
LINE = re.compile(r"^( *)([A-Za-z][A-Za-z0-9]*):(?: (.*))?$")


def rows(text):
    """(dotted name, default, description) of every documented value."""
    path, about, found, uncommented = [], None, [], []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        stripped = line.strip()
        if stripped.startswith("# -- "):
            about = stripped[5:]
            continue
        if about is not None and stripped.startswith("# "):
            about += " " + stripped[2:]
            continue
        if not stripped or stripped.startswith("#"):
            continue
        match = LINE.match(line)
        if not match:
            continue
        depth = len(match[1]) // 2
        path[depth:] = [match[2]]
        inside_documented = any(name == ".".join(path[:level]) for name, *_ in found for level in range(1, depth + 1))
        if about is not None:
            found.append((".".join(path), match[3] or nested(lines[number + 1 :], depth), about))
        elif match[3] and not inside_documented:
            uncommented.append(".".join(path))
        about = None
    if uncommented:
        sys.exit(f"values.yaml: no comment above {', '.join(uncommented)}")
    return found


def nested(lines, depth):
    """A default that is written over several lines, as one."""
    parts = []
    for line in lines:
        if len(line) - len(line.lstrip()) <= 2 * depth:
            break
        parts.append(line.strip())
    return "{" + ", ".join(parts) + "}"


def table(text):
    cells = [f"| `{name}` | `{default}` | {about.replace('|', chr(92) + '|')} |" for name, default, about in rows(text)]
    return "\n".join([BEGIN, "| Value | Default | What it is |", "|---|---|---|", *cells, END])


def main():
    readme = CHART / "README.md"
    old = readme.read_text(encoding="utf-8")
    made = table((CHART / "values.yaml").read_text(encoding="utf-8"))
    start, end = old.index(BEGIN), old.index(END) + len(END)
    new = old[:start] + made + old[end:]
    if "--check" in sys.argv[1:]:
        if new != old:
            sys.exit("helm/bench-coord/README.md is not current: run scripts/helm-readme.py")
    elif new != old:
        readme.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
