"""What the binaries really take, read from their sources: verbs, flags, variables, settings. So that no template, compose file or
workflow can name what does not exist."""

import re
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def source(path):
    return (ROOT / path).read_text(encoding="utf-8")


@cache
def structs(*paths):
    """Clap structs of files: name to (flags, structs that are flattened into it)."""
    found = {}
    for match in re.finditer(r"struct (\w+) \{\n(.*?)\n\}", "\n".join(map(source, paths)), re.S):
        flags, flattened = set(), []
        for arg, field, kind in re.findall(
            r"#\[(?:arg|command)\((.*?)\)\]\s+(?:pub(?:\(crate\))? )?(\w+): ([^\n]+),\n", match[2] + "\n", re.S
        ):
            if arg.startswith("flatten"):
                flattened.append(kind)
            elif re.search(r"\blong\b", arg):
                named = re.search(r'long = "([^"]+)"', arg)
                flags.add("--" + (named[1] if named else field.replace("_", "-")))
                flags |= {"--" + alias for alias in re.findall(r'alias = "([^"]+)"', arg)}
        found[match[1]] = (flags, flattened)
    return found


def flags_of(paths, struct):
    flags, flattened = structs(*paths)[struct]
    return set(flags).union(*(flags_of(paths, inner) for inner in flattened))


@cache
def coordinator_flags(verb):
    rooms = ("mod", "before", "results", "runs", "store")
    paths = tuple(f"coordinator/src/cli/{room}.rs" for room in rooms)
    everywhere = flags_of(paths, "GlobalArgs") | {"--help"}
    struct = re.search(rf"\n    {verb.capitalize()}\((?:Box<)?(\w+)", source(paths[0]))
    if struct:
        return everywhere | flags_of(paths, struct[1])
    assert re.search(rf"\n    {verb.capitalize()}(,| \{{|\()", source(paths[0])), f"bench-coord has no verb '{verb}'"
    return everywhere


def flags_of_command(command):
    """Flags that the program of a command line takes, by its program and verb."""
    program = command[0]
    if program == "bench-coord":
        assert len(command) > 1, "bench-coord without a verb"
        return coordinator_flags(command[1]) if command[1] != "--help" else {"--help"}
    if program == "bench-worker":
        return flags_of(("worker/src/main.rs",), "Args")
    if program == "bench-sim":
        return flags_of(("crates/sim/src/args.rs",), "Args")
    raise AssertionError(f"unknown program {program}")


def unknown_flags(command):
    given = {word.split("=")[0] for word in command[1:] if word.startswith("--")}
    return given - flags_of_command(command)


@cache
def variables():
    """Environment variables that the binaries read."""
    names = set(re.findall(r'\.env\("(\w+)"\)', source("crates/settings/src/schema.rs")))
    for file in ("crates/telemetry/src/http.rs", "crates/settings/src/command_line.rs"):
        names |= set(re.findall(r'_VARIABLE: &str = "(\w+)"', source(file)))
    names |= set(re.findall(r'env::var\("(\w+)"\)', source("crates/telemetry/src/logs.rs")))
    names |= set(re.findall(r'VARIABLE: &str = "(\w+)"', source("worker/src/meter_place.rs")))
    # read by the exporter's library
    names |= set(re.findall(r"\bOTEL_\w+", source("crates/settings/default-config.toml")))
    names |= set(re.findall(r'api_key_env = "(\w+)"', source("crates/settings/default-config.toml")))
    return names


@cache
def settings():
    """Dotted names of all settings."""
    section, names = "", set()
    for line in source("crates/settings/default-config.toml").splitlines():
        if match := re.match(r"\[([\w.]+)\]", line):
            section = match[1] + "."
        elif match := re.match(r"(?:# )?(\w+) = ", line):
            names.add(section + match[1])
    return names


def unknown_settings(text):
    def walk(table, prefix):
        for key, value in table.items():
            yield from walk(value, f"{prefix}{key}.") if isinstance(value, dict) else [prefix + key]

    names = (re.sub(r"^accounts\.\w+\.", "accounts.openai.", name) for name in walk(tomllib.loads(text), ""))
    return set(names) - settings()
