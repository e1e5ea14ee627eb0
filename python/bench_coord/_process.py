"""Runs a class as a process that bench-coord speaks to: one JSON object per line in, one out (docs/schemas/process-*.json).

`describe` imports a file and says what its class can do; `serve` answers requests until its input ends. What the class prints goes
to the log, never between the replies.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import functools
import importlib.machinery
import importlib.util
import inspect
import itertools
import json
import linecache
import math
import os
import re
import signal
import sys
import threading
import traceback
import types
import typing
from concurrent.futures import ThreadPoolExecutor

from . import Item, System, TryAgain

# Longest error of a reply, in characters: the whole traceback is in the log.
LONGEST_ERROR = 280
# Seconds that operations under way have when the input has ended.
LAST_SECONDS = 1.0
# Seconds that `close` has where nobody waits for this process any more: a runner that does ends it earlier.
LAST_OF_CLOSE = 40.0

# Most items of a bank that are listed, and one more, which tells that there are.
MOST_LISTED = 100_001

# Largest number that an attribute may have.
MOST = 1_000_000
# Most processes of a class side by side.
MOST_PROCESSES = 64
# Longest text that a setting may have, in bytes.
LONGEST_TEXT = 4096

# Operations, the method of each, and what it is given first.
METHODS = {
    "open": ("open", ("bank",)),
    "retain": ("retain", ("bank", "items")),
    "update": ("update", ("bank", "replaces", "item")),
    "forget": ("forget", ("bank", "replaces")),
    "ready": ("ready", ("bank", "expected")),
    "consolidate": ("consolidate", ("bank",)),
    "recall": ("recall", ("bank", "query", "k")),
    "answer": ("answer", ("bank", "query")),
    "verify": ("verify", ("bank",)),
    "list": ("list", ("bank",)),
    "statistics": ("statistics", ("bank",)),
    "reset": ("reset", ("bank",)),
    "health": ("health", ()),
}
# What `recall` and `answer` are given when they name it.
ON_REQUEST = ("k", "time", "time_text", "filter", "reader_mode")
# Operations that a class need not have, and that nothing takes the place of.
OPTIONAL = ("verify", "statistics")
# What `asyncio.run` and the like say where a loop runs already.
LOOP_RUNS = (
    "cannot be called from a running event loop",
    "loop is already running",
    "while another loop is running",
    "Already running ",
)
# Errors of replies that were cut off, by their names: those of libraries are not imported to be told.
CUT_OFF = {"IncompleteRead", "ChunkedEncodingError", "RemoteProtocolError", "ClientPayloadError"}


class Mistake(Exception):
    """Something about the file or the class that its author can mend; the message says how."""


# ---------------------------------------------------------------------------------------------------------------- the class


class FromText(importlib.machinery.SourceFileLoader):
    """Runs what a file says. What Python has compiled of it and put beside it may say something else."""

    def get_code(self, fullname):
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def own_path(path, folder):
    """A path below the folder of the file, as seen from there; None for what lies elsewhere, and for packages that are installed
    there."""
    # of a virtual environment, and of the Python that it was made by: either may lie in a folder above everything of its user's
    pythons = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, os.path.dirname(os.__file__)]
    above = pythons + [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    # the names by which they are called, and what links lead to
    for full in (os.path.abspath, os.path.realpath):
        base, inside = full(folder), full(path)
        installed = any(inside.startswith(full(other) + os.sep) for other in above if full(other) != base)
        if (inside + os.sep).startswith(base + os.sep) and not installed and "site-packages" not in inside.split(os.sep):
            return os.path.relpath(inside, base).replace(os.sep, "/")
    return None


# Modules that were asked for and lie in the folder of the class, but are no part of what the run has recorded: their files.
unrecorded = {}
# Why their text is not run.
UNRECORDED = "it was not imported when the run was planned, so it is no part of what was recorded and trusted"


class Recorded:
    """Finds modules in the folder of a class, or in one below it: those whose files the run has recorded. All other names are left
    to the rest of `sys.path`, whatever lies in the folder by now."""

    def __init__(self, place, inside, files):
        self.place, self.inside, self.files = place, "" if inside == "." else f"{inside}/", files

    def find_spec(self, fullname, target=None):
        name = fullname.rpartition(".")[2]
        names = (f"{name}/__init__.py", f"{name}.py")
        for file in names:
            if self.inside + file in self.files:
                return spec_from_text(fullname, os.path.join(self.place, file))
        if any(file.startswith(f"{self.inside}{name}/") for file in self.files):
            return namespace(fullname, os.path.join(self.place, name))
        for file in names + (f"{name}/",):
            if fullname not in unrecorded and holds_text(os.path.join(self.place, file)):
                unrecorded[fullname] = self.inside + file
                print(f"bench-coord: {self.inside}{file} is not run: {UNRECORDED}", file=sys.stderr)
        return None

    def iter_modules(self, prefix=""):
        """What `pkgutil` lists."""
        inside = (file[len(self.inside) :].split("/") for file in self.files if file.startswith(self.inside))
        found = {tuple(parts) for parts in inside}
        packages = {parts[0] for parts in found if parts[1:] == ("__init__.py",)}
        modules = {parts[0][: -len(".py")] for parts in found if len(parts) == 1} - packages - {"__init__"}
        return [(prefix + name, name in packages) for name in sorted(packages | modules)]


class Above(importlib.machinery.FileFinder):
    """Finds modules in the folder above that of a class, which may be a package by what the run has recorded alone."""

    def __init__(self, place, folder, files):
        machinery = importlib.machinery
        super().__init__(
            place,
            (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
            (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
            (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
        )
        self.folder, self.files = os.path.join(place, os.path.basename(folder)), files

    def find_spec(self, fullname, target=None):
        if fullname.rpartition(".")[2] != os.path.basename(self.folder):
            return super().find_spec(fullname, target)
        if "__init__.py" in self.files:
            return spec_from_text(fullname, os.path.join(self.folder, "__init__.py"))
        return namespace(fullname, self.folder)


def spec_from_text(fullname, path):
    inside = [os.path.dirname(path)] if os.path.basename(path) == "__init__.py" else None
    loader = FromText(fullname, path)
    return importlib.util.spec_from_file_location(fullname, path, loader=loader, submodule_search_locations=inside)


def namespace(fullname, folder):
    """A folder of modules that is no module itself."""
    spec = importlib.machinery.ModuleSpec(fullname, None)
    spec.submodule_search_locations = [folder]
    return spec


def holds_text(path):
    """Whether this could be imported: a file, or a folder with modules."""
    if not path.endswith("/"):
        return os.path.isfile(path)
    try:
        return any(name.endswith(".py") for name in os.listdir(path))
    except OSError:
        return False


def import_from_text(folder, files=None):
    """Modules of the folder are imported from their text alone: it goes with the run, and nothing that is compiled does. With `files`
    these and no others are, and nothing is looked for in archives that lie there."""

    def finder(path):
        inside = own_path(path, folder)
        if files is not None and inside is not None:
            return Recorded(path, inside, files)
        if files is not None and any(full(path) == os.path.dirname(full(folder)) for full in (os.path.abspath, os.path.realpath)):
            return Above(path, os.path.abspath(folder), files)
        if inside is None or not os.path.isdir(path):
            raise ImportError(f"{path} is no folder of this system")
        return importlib.machinery.FileFinder(path, (FromText, importlib.machinery.SOURCE_SUFFIXES))

    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()


def load(folder, file, name, files=None):
    """The class of a file, its folder first among those that modules come from: of any there while the class is described, of those
    that the run has recorded when it is served."""
    path = os.path.join(folder, file)
    if not os.path.isfile(path):
        raise Mistake(f"there is no file {path}")
    import_from_text(folder, files)
    sys.path.insert(0, folder)
    stem = os.path.splitext(os.path.basename(file))[0]
    spec = importlib.util.spec_from_file_location(stem, path, loader=FromText(stem, path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        traceback.print_exc()
        said = f"{file} cannot be imported: {one_line(error, folder)}"
        raise Mistake(with_record(said, error, file) or said + import_hint(error, stem, folder)) from error
    return find(module, file, name)


def import_hint(error, stem, folder):
    if isinstance(error, ImportError) and (error.name or "").split(".")[0] == stem:
        return f"; the file has the name of a package that it imports: call it something other than {stem}.py"
    if isinstance(error, ModuleNotFoundError):
        compiled = importlib.machinery.EXTENSION_SUFFIXES + importlib.machinery.BYTECODE_SUFFIXES
        for file in [(error.name or "").split(".")[0] + suffix for suffix in compiled]:
            if os.path.isfile(os.path.join(folder, file)):
                return f"; {file} is compiled, and only text goes with the run: install it as a package"
        return f"; Python is {sys.executable}: install it there, or activate the environment that has it"
    return ""


def find(module, file, name):
    """A class by its name; the only one that looks like a system where no name is given."""
    own = {
        key: value
        for key, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
    }
    systems = [key for key, value in own.items() if issubclass(value, System) or hasattr(value, "recall")]
    shown = ", ".join(systems or own) or "none"
    if not name:
        if len(systems) == 1:
            return own[systems[0]]
        raise Mistake(f"which class of {file}? Write {file}:NAME; its classes: {shown}")
    found = getattr(module, name, None)
    if not inspect.isclass(found):
        what = "has no class" if found is None else "has something that is no class"
        raise Mistake(f"{file} {what} '{name}'; its classes: {shown}")
    return found


def method(cls, name):
    """A method that the class has itself, not the one of `System` that says that it is missing."""
    found = getattr(cls, name, None)
    return found if callable(found) and found is not getattr(System, name, None) else None


def check(cls):
    """The methods are there and take what they are given."""
    shapes = {op: f"{name}({', '.join(('self',) + given)})" for op, (name, given) in METHODS.items()}
    for needed in ("retain", "recall"):
        if method(cls, needed) is None:
            near = [n for n in vars(cls) if n.lower() in ALMOST[needed]]
            hint = f" (is it what you call '{near[0]}'?)" if near else ""
            raise Mistake(f"{cls.__name__} has no method {needed}: write def {shapes[needed]}{hint}")
    for op, (name, given) in METHODS.items():
        found = method(cls, name)
        if found is not None and (op != "list" or lists(cls)):
            try:
                signature = inspect.signature(found)
                asked = [name for name in signature.parameters if name in ON_REQUEST and name not in given]
                signature.bind(*(("self",) + given), **dict.fromkeys(asked if op in ("recall", "answer") else ()))
            except TypeError:
                raise Mistake(f"{cls.__name__}.{name} must be {shapes[op]}, it is {name}{signature}") from None
            except ValueError:
                pass
    try:
        inspect.signature(cls).bind()
    except TypeError:
        raise Mistake(f"{cls.__name__} must be made without arguments: give those of __init__ defaults") from None
    except ValueError:
        pass


# Kinds of settings, as they are called in an adapter.
SIMPLE = {bool: "flag", int: "whole", float: "number", str: "text"}


def settings_of(cls):
    """Parameters of `__init__` that a run can set, as an adapter declares settings: those with a default of a simple type."""
    try:
        parameters = inspect.signature(cls).parameters.values()
    except (TypeError, ValueError):
        return {}
    try:
        hints = typing.get_type_hints(cls.__init__)
    except Exception:
        hints = {}
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    of = {one.name: setting(hints.get(one.name), one.default) for one in parameters if one.kind in by_name and one.name.isascii()}
    return {name: {"about": f"{name} of {cls.__name__}.__init__", **found} for name, found in of.items() if found}


def setting(hint, default):
    """What a parameter takes, and its default where a run could say it; None for what cannot be set from outside."""
    if default is inspect.Parameter.empty:
        return None
    origin = typing.get_origin(hint)
    values = typing.get_args(hint) if origin is typing.Literal else ()
    kind = type(values[0]) if values else type(default) if hint is None else hint
    if origin is not None and origin in (typing.Union, getattr(types, "UnionType", None)):
        # Optional[int]
        inside = [one for one in typing.get_args(hint) if one is not type(None)]
        kind = inside[0] if len(inside) == 1 else None
    if kind not in SIMPLE or not all(can_be_said(one, kind) for one in values):
        return None
    found = {"type": SIMPLE[kind], "values": list(values)}
    if default is None:
        return found
    if not isinstance(default, (int, float) if kind is float else kind) or (kind is not bool and isinstance(default, bool)):
        return None
    if can_be_said(default, kind) and (not values or default in values):
        found["default"] = default
    return found


def can_be_said(value, kind):
    if kind is str:
        short = isinstance(value, str) and len(value.encode("utf-8", "replace")) <= LONGEST_TEXT
        return short and not any(ord(one) < 32 or 127 <= ord(one) < 160 or 0xD800 <= ord(one) < 0xE000 for one in value)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    return isinstance(value, (int, float)) and math.isfinite(value) and abs(value) < 2**53


ALMOST = {
    "retain": {"add", "store", "insert", "remember", "save", "write", "ingest", "put"},
    "recall": {"search", "query", "retrieve", "find", "lookup", "get"},
}


def lists(cls):
    """Whether the class lists what a bank holds. A method of that name that takes something else is its own business."""
    found = method(cls, "list")
    if found is None:
        return False
    try:
        inspect.signature(found).bind("self", "bank")
    except (TypeError, ValueError):
        return False
    return True


def methods(cls):
    names = [name for name, _ in METHODS.values() if name != "list" or lists(cls)]
    return [found for found in (method(cls, name) for name in names) if found is not None]


def is_async(cls):
    return all(inspect.iscoroutinefunction(found) for found in methods(cls))


def lives_in_loop(cls):
    """Whether all methods run in the thread of the loop, where nothing of the class has another one to share."""
    return all(inspect.iscoroutinefunction(found) or inspect.isasyncgenfunction(found) for found in methods(cls))


def takes(found, name):
    """Whether a method has a parameter of a name; so it is said of one whose parameters are not known."""
    try:
        parameters = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return True
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def check_filters(cls, filters):
    """What a class says that it honours reaches it: a filter that no parameter takes is left out of every question."""
    for op in ("recall", "answer"):
        found = method(cls, op)
        if filters and found is not None and not takes(found, "filter"):
            given = ", ".join(("self",) + METHODS[op][1] + ("filter=None",))
            raise Mistake(
                f"{cls.__name__}.filters names {', '.join(filters)}, and {op} has no parameter filter that brings them: "
                f"write def {op}({given})"
            )


def describe(folder, file, name):
    cls = load(folder, file, name)
    check(cls)

    def say(key, kinds, default, what):
        value = getattr(cls, key, default)
        if value is not default and (not isinstance(value, kinds) or (kinds is int and isinstance(value, bool))):
            raise Mistake(f"{cls.__name__}.{key} must be {what}, it is {value!r}")
        return value

    def names(key):
        value = list(say(key, (list, tuple, set), (), "a list of names"))
        if not all(isinstance(one, str) for one in value):
            raise Mistake(f"{cls.__name__}.{key} must be a list of names, it is {value!r}")
        return value

    limit = f"a whole number from 1 to {MOST}"
    said = {
        "name": say("name", str, None, "a text") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", "-", cls.__name__).strip("-").lower(),
        "class": cls.__name__,
        "description": (inspect.cleandoc(cls.__dict__.get("__doc__") or "").splitlines() or [""])[0],
        "durable": say("durable", bool, False, "True or False"),
        "repeat": say("repeat", bool, False, "True or False"),
        "learns_from_recall": say("learns_from_recall", bool, False, "True or False"),
        "unit": say("unit", str, "turn", '"turn" or "session"'),
        "batch": say("batch", int, 64, limit),
        "parallel": say("parallel", int, None, limit) or (None if is_async(cls) else 1),
        "processes": say("processes", int, None, limit),
        "settings": settings_of(cls),
        "max_k": say("max_k", int, None, limit),
        "timeout": say("timeout", str, None, 'a time such as "90s"'),
        "filters": names("filters"),
        "env": names("env"),
        "updates": method(cls, "update") is not None,
        "withdraws": method(cls, "forget") is not None,
        "lists": lists(cls),
        "files": own_modules(folder, file),
    }
    if said["unit"] not in ("turn", "session"):
        raise Mistake(f'{cls.__name__}.unit must be "turn" or "session", it is {said["unit"]!r}')
    if (said["processes"] or 1) > MOST_PROCESSES:
        raise Mistake(f"{cls.__name__}.processes is {said['processes']}: at most {MOST_PROCESSES}")
    for key in ("batch", "parallel", "processes", "max_k"):
        if said[key] is not None and not 1 <= said[key] <= MOST:
            raise Mistake(f"{cls.__name__}.{key} must be {limit}, it is {said[key]!r}")
    check_filters(cls, said["filters"])
    check_stored(said, getattr(cls, "name", None), folder)
    return said


def check_stored(said, name, folder):
    """What is said of a class is stored with its runs: no text of it has the value of a variable that the class names and whose
    name says that it is secret, unless that value stands in the files of the class. `name` is that which the class gives itself."""
    named = {key: os.environ.get(key, "").strip() for key in said["env"] if is_secretive(key)}
    secrets = {key: value for key, value in named.items() if len(value) >= 4}
    code = [content_of(folder, file) for file in said["files"]] if secrets else []
    # a word that the class has written itself is from no variable
    secrets = {key: value for key, value in secrets.items() if not any(value in text for text in code)}
    settings = {f"settings.{key}": [known.get("default"), *known["values"]] for key, known in said["settings"].items()}
    alone = {"name": name, "description": said["description"], "timeout": said["timeout"]}
    places = {**{key: [text] for key, text in alone.items()}, "filters": said["filters"], **settings}
    for place, texts in places.items():
        for text in [one for one in texts if isinstance(one, str)]:
            for key, value in secrets.items():
                if value in text:
                    raise Mistake(
                        f"{place} comes from the variable {key} and would be stored with the run: read it in the constructor"
                    )


# What names of variables with secrets have in common: the words of `SECRETIVE` in crates/systems/src/adapter/literal.rs.
SECRETIVE = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL")


def is_secretive(name):
    """Whether the name of a variable says that it holds a secret: the rule of `is_secretive` in the same file, by which the program
    looks at what a run gives. An address or the name of a model is a setting like any other."""
    name = name.upper().replace("-", "_").replace("TOKENIZ", "")
    is_of_words = any(word in name for word in SECRETIVE) and not name.endswith("_HOST")
    is_password = name.endswith("PWD") and name not in ("PWD", "OLDPWD")
    return is_of_words or "AUTHORIZATION" in name or name.endswith("AUTH") or is_password


def content_of(folder, file):
    """What stands in one of the files of a class; nothing where it cannot be read."""
    with contextlib.suppress(OSError), open(os.path.join(folder, file), encoding="utf-8", errors="replace") as opened:
        return opened.read()
    return ""


def own_modules(folder, file):
    """Files of the modules that were imported from the folder of the file: what they say is a part of the system."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    own = {own_path(path, folder) for path in files if isinstance(path, str) and path.endswith(".py")}
    return sorted((own | {file}) - {None})


# Variables that every process sees.
ALWAYS = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}


def wanted_variables(path, name):
    """What the class says in `env`, read without running it: whoever imports it has to have set them."""
    with contextlib.suppress(OSError, SyntaxError, ValueError):
        # as Python reads it: the bytes say how they are to be taken
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and name in (None, "", node.name):
                for line in node.body:
                    targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
                    if any(isinstance(target, ast.Name) and target.id == "env" for target in targets):
                        return {one for one in ast.literal_eval(line.value) if isinstance(one, str)}
    return set()


def without_values(text):
    """A text without the values of the variables that a class names: they are keys for all that is known."""
    for name, value in os.environ.items():
        if name not in ALWAYS and len(value) >= 4:
            text = text.replace(value, "[key]")
    return text


def only_variables(arguments):
    """Begins this process anew with the variables that the class names: of one that began with others the system keeps those too
    (/proc), whatever is taken out of `os.environ`."""
    _, folder, file, name = arguments[:4]
    seen = ALWAYS | wanted_variables(os.path.join(folder, file), name)
    environment = {key: value for key, value in os.environ.items() if key in seen}
    program = [sys.executable, "-B", os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    os.execve(sys.executable, program + ["described"] + arguments[1:], environment)


# ----------------------------------------------------------------------------------------------------------------- errors


def one_line(error, folder):
    """An error with where it was raised: the author's own lines, the innermost last."""
    lines = [line.strip() for line in "".join(traceback.format_exception_only(type(error), error)).splitlines()]
    lines = [line for line in lines if line] or [type(error).__name__]
    if isinstance(error, SyntaxError) and error.filename:
        # what stands before that is the text of the line
        return f"{os.path.basename(error.filename)} line {error.lineno}: {lines[-1]}"
    # of several lines the first ones may only say how many faults there are
    said = " ".join(lines)
    here = os.path.dirname(os.path.abspath(__file__))
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((here, "<frozen"))]
    own = [f for f in frames if os.path.realpath(f.filename).startswith(os.path.realpath(folder) + os.sep)] or frames
    at = "".join(
        f", {os.path.basename(f.filename)} line {f.lineno} in {f.name}: {(f.line or '').strip()[:60]}"
        for f in own[-1:-3:-1]
    )
    return f"{said[: LONGEST_ERROR - min(len(at), 160)]}{at}"[:LONGEST_ERROR]


def variable_hint(error):
    """`os.environ["X"]` of a variable that the class has not named."""
    if isinstance(error, KeyError) and error.args and isinstance(error.args[0], str):
        frames = traceback.extract_tb(error.__traceback__)
        if frames and os.path.basename(frames[-1].filename) in ("os.py", "<frozen os>"):
            return f'; a system sees the variables that its class names: env = ["{error.args[0]}"]'
    return ""


def with_record(said, error, file):
    """What is said of an import that failed since the run has not recorded the module; None of other errors."""
    if not isinstance(error, ImportError):
        return None
    for name, missing in list(unrecorded.items()):
        package, _, module = name.rpartition(".")
        if error.name == name or (package and error.name == package and f"'{module}'" in str(error)):
            hint = f"; {missing} is not run: {UNRECORDED}. Import it at the top of {file}, and start a new run"
            return said[: max(0, LONGEST_ERROR - len(hint))] + hint
    return None


def may_pass(error):
    """Whether another try may work: connections, time limits, servers that are overloaded or broken for now."""
    status = getattr(error, "status_code", None)
    names = [cls.__name__ for cls in type(error).__mro__]
    return (
        isinstance(error, (TryAgain, ConnectionError, TimeoutError, asyncio.TimeoutError))
        or status in (408, 429)
        or (isinstance(status, int) and 500 <= status < 600)
        or any("Timeout" in name or "ConnectError" in name or "ConnectionError" in name for name in names)
        or not CUT_OFF.isdisjoint(names)
    )


# ---------------------------------------------------------------------------------------------------------------- replies


def text_of(value, what):
    if isinstance(value, str):
        return value
    raise TypeError(f"{what} must be a text, it is {type(value).__name__}")


def hit(found):
    if isinstance(found, (tuple, list)) and len(found) == 2 and not isinstance(found[1], (str, dict)):
        return {**hit(found[0]), "score": number(found[1])}
    if isinstance(found, str):
        return {"text": found}
    if isinstance(found, Item):
        return {"id": found["id"], "session_id": found["session_id"], "text": found["content"]}
    if isinstance(found, dict) and "text" in found:
        known = {"text": text_of(found["text"], "the text of a hit")}
        for key in ("id", "session_id"):
            if found.get(key) is not None:
                known[key] = str(found[key])
        return {**known, "score": number(found.get("score"))}
    raise TypeError(
        "recall must return a list of items, texts, Hit(text, id), or pairs of one of these and a score; "
        f"it holds {type(found).__name__}"
    )


def number(value):
    if value is None:
        return None
    value = float(value)
    return value if math.isfinite(value) else None


def count(value, what):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must return a whole number, it returned {type(value).__name__}")
    if not 0 <= int(value) < 2**64:
        raise ValueError(f"{what} must return a number of items, it returned {str(value)[:40]}")
    return int(value)


def tokens(value):
    """A number of tokens; none where it is not said."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return min(max(int(value), 0), 2**64 - 1)
    return 0


def cited(value):
    """What an answer rests on, as texts."""
    if value is None:
        return []
    several = [value] if isinstance(value, (str, dict)) else value
    return [str(one.get("id") or one.get("text", "")) if isinstance(one, dict) else str(one) for one in several]


def most_of(request):
    """How many hits are read of what a recall returns, which need not have an end: one too many tells that it gives more."""
    return request.get("k", 0) + 1


def read(op, request, value):
    """What a method returned, as a list where it comes bit by bit: as much of it as is wanted. Call it where the method ran: what
    libraries return may be bound to a thread."""
    wanted = {"recall": most_of(request), "list": MOST_LISTED}.get(op)
    is_whole = isinstance(value, (str, dict, list, tuple)) or inspect.isawaitable(value) or not hasattr(value, "__iter__")
    return value if wanted is None or is_whole else list(itertools.islice(value, wanted))


def reply(op, request, value):
    """What an operation's method returned, as the fields of a reply."""
    if op == "open":
        return {"handle": value} if isinstance(value, str) else {}
    if op == "retain":
        return {"count": len(request["items"])}
    if op == "recall":
        if value is None or isinstance(value, (str, dict)) or not hasattr(value, "__iter__"):
            raise TypeError(f"recall must return a list, empty where nothing is found; it returned {type(value).__name__}")
        return {"hits": [hit(found) for found in itertools.islice(value, most_of(request))]}
    if op == "answer":
        if isinstance(value, dict) and "text" in value:
            # and nothing of what tells whose reply it is
            used = {key: tokens(value.get(key)) for key in ("prompt_tokens", "completion_tokens")}
            return {**used, "citations": cited(value.get("citations")), "text": text_of(value["text"], "the text of an answer")}
        return {"text": text_of(value, "an answer")}
    if op == "ready":
        if "bool" in str(getattr(value, "dtype", "")):
            # what comparisons of numpy and the like return
            value = bool(value)
        if not isinstance(value, bool):
            raise TypeError(f"ready must return True or False, it returned {type(value).__name__}")
        return {"ready": value}
    if op == "verify":
        return {"count": count(value, "verify")}
    if op == "statistics":
        return {"numbers": {str(key): number(one) for key, one in dict(value).items() if number(one) is not None}}
    if op == "health":
        return {"version": value} if isinstance(value, str) else {}
    return {}


# ----------------------------------------------------------------------------------------------------------------- serving


def as_line(fields):
    """JSON on one line. Halves of characters, which texts of Python may hold, are no text for others: each becomes a '?'."""
    return json.dumps(fields, allow_nan=False, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


class Server:
    """Answers requests with the methods of one object."""

    def __init__(self, folder, file, name, parallel, settings, files):
        self.place, self.settings = (folder, file, name, files), settings
        self.folder, self.file, self.system, self.lock = folder, file, None, threading.Lock()
        # banks that were removed, of a class that has no `reset` and holds them in memory
        self.removed = set()
        # what is left of listings that are under way, by bank
        self.listings = {}
        # whether its object lives in the thread of the loop, and whether what is left there is called off by this side
        self.in_loop = self.ending = False
        self.threads = ThreadPoolExecutor(max_workers=parallel or 8)
        # replies have a pipe of their own: what the class prints and what it starts print goes to the log
        self.output, self.input = os.dup(1), os.fdopen(os.dup(0), "rb")
        os.dup2(2, 1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        sys.stdout.reconfigure(line_buffering=True)

    def say(self, fields):
        line = as_line(fields)
        with self.lock:
            while line:
                line = line[os.write(self.output, line) :]

    async def begin(self):
        """Makes the object where its methods run: some libraries are bound to the thread or the loop that made their objects."""

        def of_file():
            cls = load(*self.place)
            check(cls)
            return cls

        cls = await self.in_thread(of_file)
        self.in_loop = lives_in_loop(cls)
        self.system = await self.where_it_lives(lambda: cls(**self.settings))
        self.takes = {op: self.on_request(name) for op, (name, _) in METHODS.items() if method(cls, name)}
        if not lists(cls):
            self.takes.pop("list", None)

    async def where_it_lives(self, work):
        """Runs something of the object in the thread in which its methods run; what runs a loop of its own in another one."""
        if self.in_loop:
            try:
                return work()
            except RuntimeError as error:
                if not any(words in str(error) for words in LOOP_RUNS):
                    raise
                self.in_loop = False
        return await self.in_thread(work)

    async def in_thread(self, work):
        """Runs something in a thread of the system. What it raises is raised here, `SystemExit` too."""

        def outcome():
            try:
                return work(), None
            except BaseException as error:
                return None, error

        value, error = await asyncio.get_running_loop().run_in_executor(self.threads, outcome)
        if error is not None:
            raise error
        return value

    def on_request(self, name):
        found = getattr(self.system, name)
        return [known for known in ON_REQUEST if takes(found, known)]

    async def do(self, op, request):
        if op not in self.takes:
            if op == "ready":
                return {"ready": True, "returned": True}
            if op == "open":
                self.removed.discard(request["bank"])
                return {}
            if op == "reset" and not getattr(self.system, "durable", False):
                self.removed.add(request["bank"])
                return {}
            if op == "health":
                return {}
            return {"ok": False, "lacking": True, "error": f"this system has no {op}"}
        if request.get("bank") in self.removed:
            return {"ok": False, "error": "the bank was removed"}
        if op == "list" and request.get("offset") and request["bank"] in self.listings:
            return self.page(request)
        name, given = METHODS[op]
        if "items" in request:
            request["items"] = [Item(item) for item in request["items"]]
        if "item" in request:
            request["item"] = Item(request["item"])
        arguments = [request[key] for key in given]
        asked = {} if op not in ("recall", "answer") else {
            key: request.get(key) for key in self.takes[op] if key not in given
        }
        call = getattr(self.system, name)
        ask = functools.partial(call, *arguments, **asked)
        if inspect.iscoroutinefunction(call):
            value = read(op, request, await ask())
        else:
            value = await self.in_thread(lambda: read(op, request, ask()))
            if inspect.isawaitable(value):
                value = read(op, request, await value)
        if op == "list":
            self.listings[request["bank"]] = await self.all_of(value)
            return self.page(request)
        if inspect.isasyncgen(value):
            found, value = value, []
            async for one in found:
                value.append(one)
                if len(value) == most_of(request):
                    break
        return reply(op, request, value)

    async def all_of(self, value):
        """Everything that a class lists of a bank, as the runner reads hits. In an order of its own: a process that goes on in the
        place of this one in the middle of the pages has the same one, whatever the order of a set is there."""
        if value is None or isinstance(value, (str, dict)) or not (hasattr(value, "__iter__") or inspect.isasyncgen(value)):
            raise TypeError(f"list must return a list of what the bank holds; it returned {type(value).__name__}")
        if inspect.isasyncgen(value):
            found = []
            async for one in value:
                found.append(one)
                if len(found) == MOST_LISTED:
                    break
        else:
            found = itertools.islice(value, MOST_LISTED)
        return sorted((hit(one) for one in found), key=lambda one: (one.get("id") or "", one["text"]))

    def page(self, request):
        """The part of a listing that is asked for. It is kept until its last page has gone."""
        bank, first = request["bank"], request.get("offset", 0)
        behind = first + request.get("limit", MOST_LISTED)
        hits = self.listings[bank][first:behind]
        if behind < len(self.listings[bank]):
            return {"hits": hits, "cursor": str(behind)}
        del self.listings[bank]
        return {"hits": hits}

    async def answer(self, request):
        number, op = request.get("id", 0), request.get("op", "")
        try:
            if op == "hello":
                await self.begin()
                closes = {"closes": True} if callable(getattr(self.system, "close", None)) else {}
                return self.say({"id": number, "ok": True, "version": self.version(), **closes})
            fields = await self.do(op, request)
            if op == "health":
                fields = {"version": self.version(), **fields}
            self.say({"id": number, "ok": True, **fields})
        except Mistake as error:
            self.say({"id": number, "ok": False, "error": str(error)})
        # a system that wants to end the process, or calls off what it waits for, has failed too, and is asked again
        except BaseException as error:
            if self.ending and isinstance(error, asyncio.CancelledError):
                raise
            traceback.print_exc()
            said = one_line(error, self.folder)
            said = with_record(said, error, self.file) or said + variable_hint(error)
            lacking = {"lacking": True} if op in OPTIONAL and isinstance(error, NotImplementedError) else {}
            self.say({"id": number, "ok": False, "error": said, "retry": may_pass(error), **lacking})
        return None

    def version(self):
        own = getattr(self.system, "version", None)
        python = f"Python {sys.version.split()[0]}"
        return f"{own}, {python}" if isinstance(own, str) else python

    async def serve(self):
        loop, under_way = asyncio.get_running_loop(), set()
        while True:
            line = await loop.run_in_executor(self.reader, self.input.readline)
            if not line:
                break
            if line.strip():
                request = json.loads(line)
                if request.get("op") == "hello":
                    await self.answer(request)
                    continue
                task = loop.create_task(self.answer(request))
                under_way.add(task)
                task.add_done_callback(under_way.discard)
        if under_way:
            await asyncio.wait(under_way, timeout=LAST_SECONDS)
        self.ending = True
        await self.close()

    async def close(self):
        """Lets the system put away what it has. How it fails, and that it did not end, is in the log."""
        close = getattr(self.system, "close", None)
        if not callable(close):
            return
        # from a thread of its own: it may hold up this one
        late = threading.Timer(LAST_OF_CLOSE, too_late)
        late.daemon = True
        late.start()
        try:
            ended = close() if inspect.iscoroutinefunction(close) else await self.where_it_lives(close)
            if inspect.isawaitable(ended):
                await ended
        except BaseException:
            traceback.print_exc()
        late.cancel()

    reader = ThreadPoolExecutor(max_workers=1)


def too_late():
    print(f"bench-coord: close() did not end within {LAST_OF_CLOSE:.0f} s: what it had not saved is lost", file=sys.stderr)
    leave()


def leave():
    """Ends this process with all that it has started."""
    sys.stdout.flush()
    sys.stderr.flush()
    # what the system has started goes with it, also where nobody is left to see to that
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    # a thread of the system that still works would keep the process
    os._exit(0)


def main(arguments):
    """`describe` (`described`, once it has the variables that it should) or `serve`, the folder, the file, the class and how many
    operations at a time (0 for any), with what the class is made, and the files of the folder that are its own."""
    linecache.checkcache()
    verb, folder, file, name = arguments[:4]
    if verb == "serve":
        settings, files = json.loads(arguments[5]), frozenset(json.loads(arguments[6]))
        server = Server(folder, file, name, int(arguments[4]), settings, files)
        try:
            asyncio.run(server.serve())
        finally:
            leave()
    if verb == "describe":
        only_variables(arguments)
    output = os.dup(1)
    os.dup2(2, 1)
    try:
        said = {"ok": True, **describe(folder, file, name)}
    except Mistake as mistake:
        said = {"ok": False, "error": without_values(str(mistake))}
    os.write(output, as_line(said))
    sys.stderr.flush()
    os._exit(0)
