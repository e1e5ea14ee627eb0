"""What the process of a class says of it and replies, over its pipes."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import bench_coord
from bench_coord import _process

LIBRARY = str(Path(__file__).resolve().parents[1])
PROCESS = "import sys; sys.path.insert(0, sys.argv.pop(1)); from bench_coord._process import main; main(sys.argv[1:])"
ASKED = {"bank": "b", "query": "q", "k": 5}


def started(
    verb: str, folder: Path, *further: str, requests: str = "", seed: str = "0", name: str = "Mine", **variables: str
) -> "tuple[str, str]":
    """What the process wrote, and its log."""
    words = [sys.executable, "-B", "-c", PROCESS, LIBRARY, verb, str(folder), "mine.py", name, *further]
    env = {"PATH": "/usr/bin:/bin", "PYTHONHASHSEED": seed, "HOME": str(folder), **variables}
    done = subprocess.run(words, input=requests, capture_output=True, text=True, timeout=60, env=env, start_new_session=True)
    return done.stdout, done.stderr


def put(folder: Path, text: str) -> None:
    (folder / "mine.py").write_text(textwrap.dedent(text))


def described(folder: Path, name: str = "Mine", **variables: str) -> dict:
    return json.loads(started("described", folder, name=name, **variables)[0])


def served(folder: Path, *asked: dict, seed: str = "0", name: str = "Mine", parallel: str = "1") -> "tuple[list, str]":
    """The reply to `hello`, then those to what is asked, one after the other; and the log."""
    requests = [{"id": 1, "op": "hello"}, *({"id": at, **one} for at, one in enumerate(asked, 2))]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    said, log = started("serve", folder, parallel, "{}", '["mine.py"]', requests=lines, seed=seed, name=name)
    return sorted(map(json.loads, said.splitlines()), key=lambda one: one["id"]), log


def test_what_a_class_lacks_is_told_apart_from_what_it_raises(apart: Path) -> None:
    put(
        apart,
        """
        class Mine:
            banks = {}
            def retain(self, bank, items): pass
            def recall(self, bank, query, k): return []
        class Counts(Mine):
            def verify(self, bank): return len(self.banks[bank])
        class Abstract(Mine):
            def verify(self, bank): raise NotImplementedError
        """,
    )
    said = {name: served(apart, {"op": "verify", "bank": "b"}, name=name)[0][1] for name in ("Mine", "Counts", "Abstract")}
    assert said["Mine"] == {"id": 2, "ok": False, "lacking": True, "error": "this system has no verify"}
    assert "lacking" not in said["Counts"] and said["Counts"]["error"].startswith("KeyError: 'b', mine.py line 7 in verify")
    assert said["Abstract"]["lacking"] and not said["Abstract"]["retry"]


def test_filters_are_those_that_a_parameter_takes(apart: Path) -> None:
    methods = "    def retain(self, bank, items): pass\n    def recall(self, bank, query, k{}): return []\n"
    file = "".join(
        f"class {name}:\n    filters = ['tags', 'user']\n{methods.format(more)}{answer}"
        for name, more, answer in (
            ("Mine", "", ""),
            ("Named", ", filter=None", ""),
            ("All", ", **asked", ""),
            ("Answers", ", filter=None", "    def answer(self, bank, query): return 'yes'\n"),
        )
    )
    put(apart, file)
    assert described(apart)["error"] == (
        "Mine.filters names tags, user, and recall has no parameter filter that brings them: "
        "write def recall(self, bank, query, k, filter=None)"
    )
    assert described(apart, "Named")["ok"] and described(apart, "All")["ok"]
    assert described(apart, "Answers")["error"].endswith("write def answer(self, bank, query, filter=None)")


def test_a_listing_has_one_order_whatever_that_of_a_set_is(apart: Path) -> None:
    put(
        apart,
        """
        from bench_coord import Hit, Item
        class Mine:
            def retain(self, bank, items): pass
            def recall(self, bank, query, k): return []
            def list(self, bank):
                items = {f"m{n}": Item(id=f"m{n}", text=f"text {n}", content="", session_id="s") for n in range(30)}
                return set(items.values())
        """,
    )
    pages = [{"op": "list", "bank": "b", "limit": 20, "offset": at} for at in (0, 20)]
    first, second = (served(apart, *pages, seed=seed)[0] for seed in ("1", "2"))
    ids = [hit["id"] for page in first[1:] for hit in page["hits"]]
    assert ids == sorted(f"m{n}" for n in range(30)) and first == second


def test_close_has_time_and_how_it_fails_is_logged(apart: Path) -> None:
    methods = "    def retain(self, bank, items): pass\n    def recall(self, bank, query, k): return []\n"
    put(
        apart,
        f"import time\nclass Mine:\n{methods}"
        "    def close(self):\n        time.sleep(1.5)\n        open('saved', 'w').close()\n"
        f"class Fails:\n{methods}    async def close(self): raise ValueError('no disk')\nclass Nothing:\n{methods}",
    )
    replies, log = served(apart)
    assert replies[0]["closes"] and (apart / "saved").exists(), log
    assert "ValueError: no disk" in served(apart, name="Fails")[1]
    assert "closes" not in served(apart, name="Nothing")[0][0]


def test_what_a_class_calls_off_itself_is_answered(apart: Path) -> None:
    put(
        apart,
        """
        import asyncio
        class Mine:
            async def retain(self, bank, items): pass
            async def recall(self, bank, query, k):
                task = asyncio.ensure_future(asyncio.sleep(9))
                task.cancel()
                await task
        """,
    )
    (_, reply), _ = served(apart, {"op": "recall", **ASKED})
    assert not reply["ok"] and "CancelledError" in reply["error"], reply


def test_an_object_is_made_where_its_methods_run_and_results_are_read_there(apart: Path) -> None:
    put(
        apart,
        """
        import asyncio, itertools, sqlite3, threading
        class Mine:
            def __init__(self):
                self.loop, self.db = asyncio.get_running_loop(), sqlite3.connect(":memory:")
            async def retain(self, bank, items): pass
            async def recall(self, bank, query, k): return [self.db.execute("SELECT 'found'").fetchone()[0]]
            def close(self): self.db.close()
        class Lazy:
            def __init__(self): self.db = sqlite3.connect(":memory:")
            def retain(self, bank, items): pass
            def recall(self, bank, query, k):
                rows = self.db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
                return map(lambda row: f"row {row[0]}", rows)
        class Runs:
            def __init__(self): self.text = asyncio.run(self.made())
            async def made(self): return "made"
            async def retain(self, bank, items): pass
            async def recall(self, bank, query, k): return [self.text]
        """,
    )
    found = {}
    for name, parallel in (("Mine", "0"), ("Lazy", "1"), ("Runs", "0")):
        replies, log = served(apart, {"op": "recall", **ASKED}, name=name, parallel=parallel)
        assert replies[-1]["ok"] and "Traceback" not in log, (replies, log)
        found[name] = [hit["text"] for hit in replies[-1]["hits"]]
    assert found == {"Mine": ["found"], "Lazy": [f"row {n}" for n in range(1, 7)], "Runs": ["made"]}


def test_what_is_said_of_a_class_has_no_value_of_a_variable_that_it_names(apart: Path) -> None:
    put(
        apart,
        """
        import os
        from typing import Literal
        key = os.environ["MEM_KEY"]
        class Mine:
            "A plain memory."
            env = ["MEM_KEY"]
            def __init__(self, url: str = "http://localhost:1"): pass
            def retain(self, bank, items): pass
            def recall(self, bank, query, k): return []
        class Keyed(Mine):
            def __init__(self, api_key: str = key): pass
        class Stripped(Mine):
            def __init__(self, api_key: str = key.strip()): pass
        class Lists(Mine):
            def __init__(self, api_key: Literal["none", key] = "none"): pass
        class Named(Mine):
            name = "mine-" + key
        class Told(Mine):
            __doc__ = "by " + key
        class Unnamed(Keyed):
            env = []
        """,
    )
    places = {"Keyed": "settings.api_key", "Lists": "settings.api_key", "Named": "name", "Told": "description"}
    why = "comes from the variable MEM_KEY and would be stored with the run: read it in the constructor"
    for name, place in places.items():
        said = described(apart, name, MEM_KEY="open-sesame-1234")
        assert said == {"ok": False, "error": f"{place} {why}"}
    assert described(apart, "Stripped", MEM_KEY="open-sesame-1234 ")["error"] == f"settings.api_key {why}"
    # what stands in the file is not from a variable that has the same, and short ones are no keys
    for value in ("http://localhost:1", "localhost", "memory", "mine", "Mine", "1", ""):
        assert described(apart, MEM_KEY=value)["ok"], value
    assert described(apart, "Keyed", MEM_KEY="1")["ok"]
    assert described(apart, "Unnamed", MEM_KEY="open-sesame-1234")["ok"], "only those that the class names are looked for"


def test_a_setting_may_come_from_a_variable_that_is_no_key(apart: Path) -> None:
    (apart / "library.py").write_text("URL = 'http://localhost:' + str(8000)\n")
    put(
        apart,
        r"""
        import os, library
        HOST = "localhost"
        class Mine:
            "Keeps \"all\" that it hears."
            env = ["MEM_URL", "MEM_MODEL", "MEM_KEY", "MEM_KEY_HOST", "MEM_TOKENIZER"]
            def __init__(self, url: str = library.URL, model: str = os.environ.get("MEM_MODEL", "small"),
                         host: str = os.environ.get("MEM_KEY_HOST", ""), cut: str = os.environ.get("MEM_TOKENIZER", "")): pass
            def retain(self, bank, items): pass
            def recall(self, bank, query, k): return []
        class Made(Mine):
            def __init__(self, url: str = f"http://{HOST}:8000"): pass
        """,
    )
    ordinary = {"MEM_URL": "http://localhost:8000", "MEM_MODEL": "gpt-4o-mini", "MEM_KEY_HOST": "db.example"}
    said = described(apart, **ordinary, MEM_TOKENIZER="cl100k")
    assert said["ok"] and said["settings"]["model"]["default"] == "gpt-4o-mini", said
    # a word of the file is from no variable, wherever in a text it stands and however the file writes that text
    for name, value in (("Made", "localhost"), ("Mine", "hears"), ("Mine", "that it")):
        assert described(apart, name, MEM_KEY=value)["ok"], (name, value)


def test_a_name_says_as_everywhere_whether_a_variable_is_secret() -> None:
    for name in ("MEM_KEY", "mem-token", "A_SECRET_B", "DB_PASS", "CREDENTIALS", "X_AUTHORIZATION", "MY_AUTH", "MYSQL_PWD"):
        assert _process.is_secretive(name), name
    for name in ("MEM_MODEL", "MEM_URL", "TOKENIZERS_PARALLELISM", "KEY_HOST", "PWD", "OLDPWD", "AUTHOR", "PATH"):
        assert not _process.is_secretive(name), name


def test_a_file_that_begins_with_a_mark_names_its_variables(apart: Path) -> None:
    (apart / "mine.py").write_bytes(b"\xef\xbb\xbfclass Mine:\n    env = ['MY_KEY']\n")
    assert _process.wanted_variables(str(apart / "mine.py"), "Mine") == {"MY_KEY"}


class Flag:
    dtype = "bool"

    def __init__(self, value: bool) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return self.value


def test_replies_hold_what_the_runner_reads() -> None:
    answer = bench_coord.Answer("yes", citations=[7, bench_coord.Item(id="m1")], prompt_tokens=None, completion_tokens=2.0)
    said = _process.reply("answer", {}, answer)
    assert said == {"text": "yes", "citations": ["7", "m1"], "prompt_tokens": 0, "completion_tokens": 2}
    assert _process.reply("answer", {}, {"text": "yes", "citations": "m1"})["citations"] == ["m1"]
    assert bench_coord.Answer("yes", citations=None)["citations"] == []
    assert [_process.reply("ready", {}, Flag(value))["ready"] for value in (True, False)] == [True, False]
    with pytest.raises(TypeError, match="ready must return True or False"):
        _process.reply("ready", {}, 1)


def test_an_error_of_several_lines_is_said_with_its_cause() -> None:
    def said(error: BaseException) -> str:
        return _process.one_line(error, "/nowhere")

    several = ValueError("1 fault in Mine\nname\n  Field required\n    For further information visit https://errors.example")
    assert said(several).startswith("ValueError: 1 fault in Mine name Field required For further")
    with pytest.raises(SyntaxError) as broken:
        compile("class Mine(:", "mine.py", "exec")
    assert said(broken.value).startswith("mine.py line 1: SyntaxError: ")
    assert _process.may_pass(type("IncompleteRead", (Exception,), {})())


def test_an_item_has_what_memories_may_have() -> None:
    item = bench_coord.Item(id="m1", text="tea")
    assert (item.tags, item.user, item.scopes, item.fields) == ([], None, [], {})
    assert bench_coord.Item(tags=["work"]).tags == ["work"]
    with pytest.raises(AttributeError, match="an item has no 'txt', it has: id, text"):
        item.txt


def test_calls_for_a_bank_go_to_an_address_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_METER_URL", raising=False)
    assert bench_coord.meter_url("bench-12-g3") is None
    assert bench_coord.meter_url("bench-12-g3", "https://api.example/v1") == "https://api.example/v1"
    monkeypatch.setenv("BENCH_METER_URL", "http://127.0.0.1:7/m/r1/v1")
    assert bench_coord.meter_url("bench-12-g3", "elsewhere") == "http://127.0.0.1:7/m/r1/bench-12/3/v1"
    assert bench_coord.meter_url("bench-12-g3-i5f") == "http://127.0.0.1:7/m/r1/bench-12/3/v1"
    assert bench_coord.meter_url("my bank/1-g1") == "http://127.0.0.1:7/m/r1/my%20bank%2F1/1/v1"
    for other in ("try", "-g1", "bench-g", "bench-gx"):
        assert bench_coord.meter_url(other) == "http://127.0.0.1:7/m/r1/v1"
