"""A class is served with the files that its run has recorded: what has come to lie beside them is not run."""

import json
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from bench_coord._process import Recorded

LIBRARY = str(Path(__file__).resolve().parents[1])
PROCESS = "import sys; sys.path.insert(0, sys.argv.pop(1)); from bench_coord._process import main; main(sys.argv[1:])"
CLASS = """{top}
class Mine:
    def retain(self, bank, items): pass
    def recall(self, bank, query, k):
{lines}
"""


def started(verb: str, folder: Path, *further: str, requests: str = "") -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-I", "-B", "-c", PROCESS, LIBRARY, verb, str(folder), "mine.py", "Mine", *further]
    return subprocess.run(words, input=requests, capture_output=True, text=True, timeout=60)


def recorded(folder: Path) -> list:
    """What the class is described with."""
    said = json.loads(started("described", folder).stdout)
    assert said["ok"], said
    return said["files"]


def recall(folder: Path, files: list) -> "tuple[dict, str]":
    """The reply to a recall, or to being made where that fails, and the log."""
    requests = [{"id": 1, "op": "hello"}, {"id": 2, "op": "recall", "bank": "b", "query": "q", "k": 1}]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = started("serve", folder, "1", "{}", json.dumps(files), requests=lines)
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    return next((reply for reply in replies if not reply["ok"]), replies[-1]), done.stderr


def write(folder: Path, files: "dict[str, str]") -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def mine(*lines: str, top: str = "") -> str:
    return CLASS.format(top=top, lines="\n".join(f"        {line}" for line in lines))


PLANTED = "raise SystemExit('planted')\n"


def test_a_planted_file_takes_the_place_of_no_module(apart: Path) -> None:
    lines = ["import colorsys, wave, chunks", "return [f'{colorsys.__name__} {wave.__name__} {chunks.word}']"]
    write(apart, {"mine.py": mine(*lines, top="import chunks"), "chunks.py": "word = 'own'\n"})
    files = recorded(apart)
    assert files == ["chunks.py", "mine.py"]
    write(apart, {name: PLANTED for name in ("colorsys.py", "wave/__init__.py", "chunks/__init__.py", "json/__init__.py")})
    reply, log = recall(apart, files)
    assert reply["hits"] == [{"text": "colorsys wave own"}], (reply, log)
    assert "bench-coord: colorsys.py is not run: it was not imported when the run was planned" in log


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("import words", "words.py"),
        ("from words import most", "words.py"),
        ("import parts.more", "parts/more.py"),
        ("from parts import more", "parts/more.py"),
        ("import apart.words", "apart/"),
    ],
)
def test_a_module_that_was_not_imported_is_said_with_what_helps(apart: Path, statement: str, missing: str) -> None:
    modules = {name: "most = 1\n" for name in ("words.py", "parts/__init__.py", "parts/more.py", "apart/words.py")}
    write(apart, {**modules, "mine.py": mine(statement, "return ['ran']", top="import parts")})
    files = recorded(apart)
    assert files == ["mine.py", "parts/__init__.py"]
    error = recall(apart, files)[0]["error"]
    for said in (
        "ImportError: " if statement == "from parts import more" else "ModuleNotFoundError: No module named ",
        f"; {missing} is not run: it was not imported when the run was planned, so it is no part of what was recorded",
        ". Import it at the top of mine.py, and start a new run",
    ):
        assert said in error, error
    assert len(error) < 300, "the runner shows no more"
    # the same while the file itself is imported
    write(apart, {"mine.py": f"import parts\n{statement}\n{mine('return []')}"})
    error = recall(apart, files)[0]["error"]
    assert error.startswith("mine.py cannot be imported: ") and error.endswith("start a new run") and len(error) < 300, error
    write(apart, {"mine.py": mine(statement, "return ['ran']", top=f"import parts\n{statement}")})
    assert recall(apart, recorded(apart))[0]["hits"] == [{"text": "ran"}]


def test_packages_folders_on_the_path_and_lists_of_modules_are_found_as_they_were(apart: Path) -> None:
    top = """import os, pkgutil, sys
sys.path.insert(0, os.path.join(os.path.dirname(__file__), 'lib'))
sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import apart.words, helper, parts.first, parts.second, work.words
from work import words as same
names = [one.name for one in pkgutil.iter_modules(parts.__path__, 'parts.')]"""
    text = "return [' '.join(names + [helper.word, apart.words.word, same.word, open(helper.__file__ + '.txt').read()])]"
    modules = ("lib/helper.py", "apart/words.py", "parts/first.py", "parts/second.py", "words.py")
    write(apart, {name: f"word = {name!r}\n" for name in modules})
    write(apart, {"parts/__init__.py": "", "lib/helper.py.txt": "data", "mine.py": mine(text, top=top)})
    files = recorded(apart)
    assert files == sorted(modules + ("parts/__init__.py", "mine.py"))
    before = recall(apart, files)
    planted = ("parts/third.py", "lib/json.py", "lib/colorsys.py", "apart/__init__.py", "__init__.py", "helper.py")
    write(apart, {name: PLANTED for name in planted})
    py_compile.compile(str(apart / "helper.py"), str(apart / "lib/wave.pyc"))
    after = recall(apart, files)
    assert before[0] == after[0], after
    assert before[0]["hits"] == [{"text": "parts.first parts.second lib/helper.py apart/words.py words.py data"}], before


def test_what_is_compiled_or_packed_there_is_not_found(apart: Path) -> None:
    import zipfile

    (apart / "other.py").write_text("word = 'compiled'\n")
    py_compile.compile(str(apart / "other.py"), str(apart / "words.pyc"))
    py_compile.compile(
        str(apart / "other.py"),
        str(apart / "__pycache__" / f"own.{sys.implementation.cache_tag}.pyc"),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    with zipfile.ZipFile(apart / "packed.zip", "w") as packed:
        packed.writestr("packed.py", "")
    lines = ["found = []", "for name in ('words', 'packed', 'own'):", "    try: found.append(__import__(name).__name__)"]
    lines += ["    except ImportError: pass", "return [f'{found} {own.word}']"]
    top = "import os, sys, own; sys.path.append(os.path.join(os.path.dirname(__file__), 'packed.zip'))"
    write(apart, {"own.py": "word = 'text'\n", "mine.py": mine(*lines, top=top)})
    assert recall(apart, recorded(apart))[0]["hits"] == [{"text": "['own'] text"}]


def test_the_finder_reads_the_list_and_not_the_folder() -> None:
    files = frozenset(["mine.py", "parts/__init__.py", "parts/a.py", "parts/b/__init__.py", "apart/c.py"])
    top, parts = Recorded("/nowhere", ".", files), Recorded("/nowhere/parts", "parts", files)
    found = {name: top.find_spec(name) for name in ("mine", "parts", "apart", "a", "json", "mine.py", "part")}
    assert {name: spec and spec.origin for name, spec in found.items()} == {
        "mine": "/nowhere/mine.py",
        "parts": "/nowhere/parts/__init__.py",
        **dict.fromkeys(("apart", "a", "json", "mine.py", "part")),
    }
    assert (found["apart"].loader, list(found["apart"].submodule_search_locations)) == (None, ["/nowhere/apart"])
    assert [found[name] for name in ("a", "json", "mine.py", "part")] == [None] * 4
    assert parts.find_spec("parts.a").origin == "/nowhere/parts/a.py"
    assert top.iter_modules() == [("mine", False), ("parts", True)]
    assert parts.iter_modules("parts.") == [("parts.a", False), ("parts.b", True)]
