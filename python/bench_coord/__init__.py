"""A memory system for bench-coord in Python, without a server and without a file of settings.

    import bench_coord

    class Mine(bench_coord.System):
        def __init__(self):
            self.banks = {}

        def retain(self, bank, items):
            self.banks.setdefault(bank, []).extend(items)

        def recall(self, bank, query, k):
            words = set(query.lower().split())
            overlap = lambda item: len(words & set(item.text.lower().split()))
            return sorted(self.banks.get(bank, []), key=overlap, reverse=True)[:k]

`bench-coord submit --dataset locomo-sim --preset quick --system mine.py:Mine` measures it, and so does
`bench_coord.run(dataset="locomo-sim", preset="quick", system=Mine)`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Union

if TYPE_CHECKING:
    from ._errors import Error, Inconclusive, Interrupted, Invalid, Regression, Stopped, Unavailable, UsageError
    from ._run import Comparison, Gate, Group, Record, Run, estimate, load, resume, run

#: What runs are started and looked at with, by the module that has it.
_RUNS = {
    **dict.fromkeys(("Comparison", "Gate", "Group", "Record", "Run", "estimate", "load", "resume", "run"), "_run"),
    **dict.fromkeys(
        ("Error", "Inconclusive", "Interrupted", "Invalid", "Regression", "Stopped", "Unavailable", "UsageError"), "_errors"
    ),
}

__all__ = ["Answer", "Hit", "Item", "System", "TryAgain", "meter_url", *_RUNS]  # pyright: ignore


def __getattr__(name: str) -> Any:
    """Runs are imported when they are first used. The process of a system has only what systems need."""
    if name not in _RUNS:
        raise AttributeError(f"module 'bench_coord' has no attribute '{name}'")
    import importlib

    try:
        return getattr(importlib.import_module(f".{_RUNS[name]}", __name__), name)
    except ModuleNotFoundError as missing:
        if missing.name != f"{__name__}.{_RUNS[name]}":
            raise
        return _in_a_system(name)


def _in_a_system(name: str) -> Any:
    """What stands for a part that starts runs, where the file is imported to make a system of its class."""
    if name[0].isupper():
        return type(name, (Exception,), {})

    def refuse(*_: Any, **__: Any) -> Any:
        raise RuntimeError(
            f"bench_coord.{name}(…) is called while the file is imported to make a system of its class: "
            'put it below `if __name__ == "__main__":`'
        )

    return refuse


class TryAgain(Exception):
    """Raised by a system whose next try may work: the operation is repeated after a while. Errors of connections, time
    limits and overloaded servers are taken so by themselves."""


def meter_url(bank: str, otherwise: Optional[str] = None) -> Optional[str]:
    """The base URL, with `/v1`, for model calls that are for this bank: in a run with `--meter` they are then known to be the
    bank's, also while other banks are worked on. `otherwise` where calls are not metered."""
    url = os.environ.get("BENCH_METER_URL")
    if not url:
        return otherwise
    # as the runner names it: bench-12-g3, or bench-12-g3-i5f
    name, _, rest = bank.rpartition("-g")
    generation = rest.partition("-i")[0]
    if not (name and generation.isascii() and generation.isdigit()):
        return url
    from urllib.parse import quote

    base = url[: -len("/v1")] if url.endswith("/v1") else url
    return f"{base}/{quote(name, safe='')}/{int(generation)}/v1"


# What an item has where nothing of the kind was said of it: the runner leaves these out.
_WHERE_ABSENT: Dict[str, Any] = {"tags": list, "user": lambda: None, "scopes": list, "fields": dict}


class Item(Dict[str, Any]):
    """Something to store: a turn, a session or a memory. `item.text` is `item["text"]`.

    `id` hits give it back; `text` what is said, with who says it; `content` the same after its date; `speaker`; `role`
    (`user` or `assistant`); `session_id`; `time` (RFC 3339, in UTC) and `time_text` (the dataset's words), or None; and
    of a memory `tags`, `user`, `scopes`, `fields`, which are empty (`user` None) where it has none.
    """

    id: str
    text: str
    content: str
    speaker: Optional[str]
    role: str
    session_id: str
    time: Optional[str]
    time_text: Optional[str]
    tags: List[str]
    user: Optional[str]
    scopes: List[str]
    fields: Dict[str, str]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            if name in _WHERE_ABSENT:
                return _WHERE_ABSENT[name]()
            raise AttributeError(f"an item has no '{name}', it has: {', '.join(self)}") from None

    def __hash__(self) -> int:  # type: ignore[override]
        return hash((self.get("id"), self.get("text")))


class Hit(Dict[str, Any]):
    """Something that was found: its text, and the id or the session of the item where they are known. The order of the
    hits is what counts, not their scores."""

    def __init__(
        self,
        text: str,
        id: Optional[str] = None,
        score: Optional[float] = None,
        session_id: Optional[str] = None,
    ) -> None:
        super().__init__(text=text, id=id, score=score, session_id=session_id)


class Answer(Dict[str, Any]):
    """What `answer` may return instead of a text: the text, the ids or texts that it rests on, and the tokens that it
    took."""

    def __init__(
        self,
        text: str,
        citations: Optional[Iterable[str]] = (),
        prompt_tokens: Optional[int] = 0,
        completion_tokens: Optional[int] = 0,
    ) -> None:
        super().__init__(
            text=text,
            citations=[citations] if isinstance(citations, str) else list(citations or ()),
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
        )


Found = Union[str, Item, Hit, Dict[str, Any], "tuple[Any, float]"]


class System:
    """A memory system. `retain` and `recall` are needed; each method may be `async`.

    Further methods are used when a class has them: `open(bank)`, `update(bank, replaces, item)`, `forget(bank, ids)`,
    `ready(bank, expected)`, `consolidate(bank)`, `answer(bank, query)`, `verify(bank)` (how many items the bank holds),
    `list(bank)` (all of them, as `recall` returns what it finds), `statistics(bank)` (numbers by name), `reset(bank)`, `health()` and `close()`. `recall` and `answer` are also given
    what they name among their parameters: `k`, `time` (RFC 3339), `time_text`, `filter`, `reader_mode`.

    Parameters of `__init__` with a default that is a number, a text or a bool are settings of the class: `--set
    mine.top=8`, or `set={"mine.top": 8}` of `bench_coord.run`, by the name of the system.
    """

    #: Name in reports; the name of the class, in small letters, unless given.
    name: Optional[str] = None
    #: Version in reports.
    version: Optional[str] = None
    #: What was stored outlives the process (a database, files). Otherwise a process that is started anew is given all
    #: of it again.
    durable: bool = False
    #: Storing an item twice changes nothing.
    repeat: bool = False
    #: Searching changes what later searches find.
    learns_from_recall: bool = False
    #: What an item is: "turn" or "session".
    unit: str = "turn"
    #: Most items of one `retain`.
    batch: int = 64
    #: Operations at a time: one, unless all methods are `async`; with more, methods that are not run in threads.
    parallel: Optional[int] = None
    #: Processes side by side, each with banks of its own: one, unless more are said.
    processes: Optional[int] = None
    #: Largest k of a recall, where there is one.
    max_k: Optional[int] = None
    #: Time of one operation, such as "90s". `close` has as much, at most 30 seconds.
    timeout: Optional[str] = None
    #: Parts of a question's filter that `recall` and `answer` honour: "tags", "user", "scope", "scopes", "from",
    #: "until". Both then have a parameter `filter`.
    filters: List[str] = []
    #: Variables of the environment that the code reads. It sees no others.
    env: List[str] = []

    def retain(self, bank: str, items: List[Item]) -> Any:
        """Stores items, in the order in which they were said."""
        raise NotImplementedError("retain(self, bank, items) is missing")

    def recall(self, bank: str, query: str, k: int) -> Iterable[Found]:
        """Searches a bank: items, texts, `Hit`s, or pairs of one of these and its score, best first."""
        raise NotImplementedError("recall(self, bank, query, k) is missing")
