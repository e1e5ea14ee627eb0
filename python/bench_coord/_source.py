"""A class that is given as an object, as `--system` names it: the file that it was read from, or one that is written
from the cells of a notebook, with what the class uses of them."""

from __future__ import annotations

import __future__ as future
import ast
import contextlib
import inspect
import linecache
import os
import re
import shutil
import symtable
import sys
import tempfile
import types
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ._errors import UsageError

# Shortest text that is taken for the value of a variable: a shorter one is it by chance.
SHORTEST_SECRET = 8
# Length from which it is looked for inside of other texts too ("Bearer …").
SHORTEST_INSIDE = 16
# Variables that hold no keys.
NO_SECRETS = re.compile(
    r"_|PATH|HOME|PWD|OLDPWD|SHELL|TERM|COLORTERM|USER|LOGNAME|HOSTNAME|EDITOR|VISUAL|PAGER|DISPLAY|TZ|TMPDIR|LANG|LANGUAGE"
    r"|MPLBACKEND|PYTHONPATH|CONDA_DEFAULT_ENV|(LC|XDG)_\w+"
)


@contextlib.contextmanager
def nameable(system: Any) -> Iterator[Optional[str]]:
    """What `--system` takes for a system: a name, a path, a class. What is written for it is there while the block
    runs."""
    if system is None or isinstance(system, (str, os.PathLike)):
        yield None if system is None else os.fspath(system)
        return
    if not inspect.isclass(system):
        raise UsageError(
            f"system is an object of {type(system).__name__}: give the class itself"
        )
    if system.__qualname__ != system.__name__:
        raise UsageError(f"{system.__qualname__} lies inside of something else: define {system.__name__} at the top of its file")
    file = file_of(system)
    if file is not None:
        yield f"{file}:{system.__name__}"
        return
    folder = tempfile.mkdtemp(prefix="bench-coord-")
    try:
        yield f"{write(system, folder)}:{system.__name__}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def file_of(system: type) -> Optional[str]:
    """The file of a class's module; None for a class of a notebook or of a prompt."""
    module = sys.modules.get(system.__module__)
    path = getattr(module, "__file__", None)
    if isinstance(path, str) and path.endswith(".py") and os.path.isfile(path) and not typed_in(system):
        return os.path.abspath(path)
    return None


def typed_in(system: type) -> bool:
    """Whether a class of a file's namespace was typed in later (`python -i`, `%run`)."""
    code = own_code(system)
    return code is not None and not os.path.isfile(code.co_filename)


def own_code(system: type) -> Optional[types.CodeType]:
    """The code of any method that the class has itself."""
    for value in vars(system).values():
        value = getattr(value, "__func__", getattr(value, "fget", value))
        if inspect.isfunction(value) and value.__qualname__.startswith(f"{system.__qualname__}."):
            return value.__code__
    return None


def write(system: type, folder: str) -> str:
    """Writes a file with a class of a notebook and all that it uses."""
    written = Written(sys.modules[system.__module__].__dict__)
    written.define(system.__name__, system)
    path = os.path.join(folder, re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", system.__name__).lower() + ".py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(written.text())
    copy_modules(folder)
    return path


def copy_modules(folder: str) -> None:
    """Copies modules that were imported from the working folder: the file's own imports find them beside it."""
    here = os.path.realpath(os.curdir)
    package = os.path.dirname(os.path.realpath(__file__))
    installed = os.path.realpath(sys.prefix)
    for name, module in list(sys.modules.items()):
        path = getattr(module, "__file__", None)
        if name == "__main__" or not isinstance(path, str) or not path.endswith(".py"):
            continue
        path = os.path.realpath(path)
        outside = not path.startswith(here + os.sep) or "site-packages" in path.split(os.sep)
        if outside or path.startswith(package + os.sep) or (installed != here and path.startswith(installed + os.sep)):
            continue
        parts = name.split(".") + (["__init__"] if os.path.basename(path) == "__init__.py" else [])
        copy = os.path.join(folder, *parts) + ".py"
        if not os.path.exists(copy):
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(path, copy)


class Written:
    """The text of a file that has the names of a namespace that a class needs, each after what it needs itself."""

    def __init__(self, namespace: Dict[str, Any]) -> None:
        self.namespace = namespace
        self.secrets = secrets(namespace)
        self.begun: Set[str] = set()
        self.futures: Set[str] = set()
        self.parts: List[str] = []

    def text(self) -> str:
        futures = [f"from __future__ import {name}" for name in sorted(self.futures)]
        return "\n\n".join([*futures, *self.parts]) + "\n"

    def define(self, name: str, value: Any) -> None:
        """Writes what a name stands for."""
        if name in self.begun:
            return
        self.begun.add(name)
        if inspect.ismodule(value):
            self.parts.append(f"import {value.__name__} as {name}")
            return
        own = getattr(value, "__module__", None) == self.namespace.get("__name__")
        if own and (inspect.isclass(value) or inspect.isfunction(value)) and value.__name__ == name:
            self.add(definition(value))
            self.note_futures(value)
            return
        home = sys.modules.get(getattr(value, "__module__", None) or "")
        known = getattr(value, "__name__", None)
        if home is not None and not own and known and getattr(home, known, None) is value:
            self.parts.append(f"from {home.__name__} import {known} as {name}")
            return
        statement = typed(name)
        refuse_secrets(name, value, statement, self.secrets)
        if is_plain(value):
            self.parts.append(f"{name} = {value!r}")
            return
        if statement is None:
            raise UsageError(
                f"the class uses {name}, a {type(value).__name__} of the notebook that cannot be written to a file: "
                "make it in __init__, or in a module that the notebook imports"
            )
        self.add(statement)

    def add(self, source: str) -> None:
        """A statement, after what it uses."""
        for name in names(source):
            if name in self.namespace:
                self.define(name, self.namespace[name])
        self.parts.append(source)

    def note_futures(self, value: Any) -> None:
        code = own_code(value) if inspect.isclass(value) else value.__code__
        if code is not None and code.co_flags & future.annotations.compiler_flag:
            self.futures.add("annotations")


def names(source: str) -> List[str]:
    """Global names that a statement uses, in the order of the alphabet."""
    found: Set[str] = set()

    def look(table: symtable.SymbolTable) -> None:
        at_top = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_referenced() and (at_top or symbol.is_global()):
                found.add(symbol.get_name())
        for child in table.get_children():
            look(child)

    look(symtable.symtable(source, "<cell>", "exec"))
    return sorted(found)


def is_plain(value: Any) -> bool:
    """Whether a value can be written as it is shown: numbers, texts, and lists and dicts of them."""
    if not isinstance(value, (type(None), bool, int, float, complex, str, bytes, tuple, list, dict, set)):
        return False
    with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return bool(ast.literal_eval(repr(value)) == value)
    return False


def secrets(namespace: Dict[str, Any]) -> Dict[str, Tuple[str, str]]:
    """Texts that came from outside of the notebook, each with where it came from and the variable to read it from."""
    asked = {name for source in cells() for node in top(source) if asks_for_a_text(node) for name in bound(node)}
    entered = {name: namespace[name] for name in sorted(asked) if isinstance(namespace.get(name), str)}
    found = {held: (f"what was typed in for {name}", name) for name, held in entered.items()}
    for variable, held in os.environ.items():
        # a path that is there is no key
        if not NO_SECRETS.fullmatch(variable) and not os.path.exists(held):
            found[held] = (f"variable {variable}", variable)
    return {held: about for held, about in found.items() if len(held) >= SHORTEST_SECRET}


def refuse_secrets(name: str, value: Any, statement: Optional[str], known: Dict[str, Tuple[str, str]]) -> None:
    """What is written goes with the run into the store and the report: nothing of it comes from outside of the notebook."""
    if statement is not None and any(asks_for_a_text(node) for node in top(statement)):
        raise UsageError(outside(name, f"what was typed in for {name}", name))
    if statement is not None and is_literal(statement, value):
        return
    for text in texts_of(value):
        for held, (source, variable) in known.items():
            if text == held or (len(held) >= SHORTEST_INSIDE and held in text):
                raise UsageError(outside(name, source, variable))


def outside(name: str, source: str, variable: str) -> str:
    return (
        f"the class uses {name}, which comes from {source} and would be stored with the run: read it in __init__ with "
        f'os.environ["{variable}"], and name it in the class: env = ["{variable}"]'
    )


def texts_of(value: Any) -> Iterator[str]:
    """The texts that a plain value holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode("utf-8", "replace")
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from texts_of(key)
            yield from texts_of(one)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for one in value:
            yield from texts_of(one)


def asks_for_a_text(statement: ast.stmt) -> bool:
    """Whether a statement asks a person for something: written into a file it would ask where nobody is."""
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    called = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    by_name = any(isinstance(one, ast.Name) and one.id in ("getpass", "input") for one in called)
    return by_name or any(isinstance(one, ast.Attribute) and one.attr == "getpass" for one in called)


def is_literal(statement: str, value: Any) -> bool:
    """Whether a value stands in its statement as it is."""
    with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError, AttributeError, IndexError):
        return bool(ast.literal_eval(top(statement)[0].value) == value)  # type: ignore[attr-defined]
    return False


def definition(value: Any) -> str:
    """The text of a class or a function that was typed into a cell."""
    code = own_code(value) if inspect.isclass(value) else value.__code__
    kinds = (ast.ClassDef,) if inspect.isclass(value) else (ast.FunctionDef, ast.AsyncFunctionDef)
    if code is not None:
        source = "".join(linecache.getlines(code.co_filename))
        for node in top(source):
            if isinstance(node, kinds) and node.name == value.__name__ and covers(node, code.co_firstlineno):
                return segment(source, node)
    statement = typed(value.__name__)
    if statement is None:
        raise UsageError(f"the text of {value.__name__} is not known: put it into a file, and give file.py:{value.__name__}")
    return statement


def covers(node: Any, line: int) -> bool:
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return first <= line <= node.end_lineno


def typed(name: str) -> Optional[str]:
    """The newest statement of a notebook's cells that gives a name its value."""
    for source in reversed(cells()):
        for node in reversed(top(source)):
            if name in bound(node):
                return segment(source, node)
    return None


def cells() -> List[str]:
    """The cells of the notebook that were run, in the order in which they were."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    if shell is None:
        return []
    texts = [text for text in shell.user_ns.get("In", []) if isinstance(text, str)]
    return [shell.transform_cell(text) for text in texts]


def top(source: str) -> List[ast.stmt]:
    try:
        return ast.parse(source).body
    except (SyntaxError, ValueError):
        return []


def bound(node: ast.stmt) -> Set[str]:
    """Names that a statement gives a value."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}


def segment(source: str, node: Any) -> str:
    """The lines of a statement, its decorators included."""
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])
