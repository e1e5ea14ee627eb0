"""A memory server of the Model Context Protocol, by the protocol's own library for Python: over stdio, or over HTTP with a port.

NOTES_FILE is where notes are kept; without it they end with the process. NOTES_DIES_AT says of which call of which tool it dies
(`retain:20`), once, and NOTES_MARK is the file by which its next process knows that it has.
"""

import json
import os
import re
import signal
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

COMMON = set("a an and are at did do does for from has have how i in is it of on or that the they to was were what when where which who".split())

server = MCPServer("notes", version="1.0", log_level="WARNING")
kept = os.environ.get("NOTES_FILE")
notes: dict[str, dict[str, str]] = {}
calls: dict[str, int] = {}


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower())) - COMMON


def begun(tool: str) -> None:
    """Dies in the middle of the call that it is told of."""
    calls[tool] = calls.get(tool, 0) + 1
    mark = Path(os.environ.get("NOTES_MARK", "none"))
    if f"{tool}:{calls[tool]}" == os.environ.get("NOTES_DIES_AT") and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def keep(change: dict) -> None:
    notes.setdefault(change["user"], {}).update(change["notes"])
    if kept:
        with open(kept, "a", encoding="utf-8") as file:
            file.write(json.dumps(change) + "\n")


@server.tool()
def retain(user: str, items: list[dict[str, str]]) -> dict[str, int]:
    """Keeps notes of a user; one that is kept again is kept once."""
    begun("retain")
    keep({"user": user, "notes": {item["id"]: item["text"] for item in items}})
    return {"stored": len(items)}


@server.tool()
def search(user: str, query: str, limit: int = 5) -> list[dict[str, str | float]]:
    """The notes of a user that share most words with a query."""
    begun("search")
    wanted = words(query)
    found = [(len(wanted & words(text)), id, text) for id, text in notes.get(user, {}).items()]
    found.sort(key=lambda one: -one[0])
    return [{"id": id, "text": text, "score": float(score)} for score, id, text in found[:limit] if score]


@server.tool(structured_output=False)
def lines(user: str, query: str, limit: int = 5) -> list[str]:
    """The same as lines of text, each a block of its own."""
    return [str(one["text"]) for one in search(user, query, limit)]


@server.tool(structured_output=False)
def answer(user: str, query: str) -> str:
    """What a user's best note says."""
    return next(iter(lines(user, query, 1)), "I do not know.")


@server.tool()
def count(user: str) -> int:
    """How many notes a user has."""
    return len(notes.get(user, {}))


@server.tool()
def everything(user: str) -> list[dict[str, str]]:
    """All notes of a user."""
    return [{"id": id, "text": text} for id, text in notes.get(user, {}).items()]


@server.tool()
def remove(user: str) -> None:
    """Forgets a user."""
    notes.pop(user, None)


@server.tool()
def long(user: str, query: str) -> str:
    """A reply that nobody wants to have whole."""
    return "x" * 2_000_000


@server.tool()
def broken(user: str, query: str) -> str:
    """Fails, and says with which key."""
    raise ToolError(f"the index of {user} is broken, key {os.environ.get('NOTES_KEY')}")


if kept and Path(kept).exists():
    for line in Path(kept).read_text(encoding="utf-8").splitlines():
        change = json.loads(line)
        notes.setdefault(change["user"], {}).update(change["notes"])
print("notes begin", sorted(name for name in os.environ if name.startswith("NOTES_")), file=sys.stderr, flush=True)
if len(sys.argv) > 1:
    server.run(transport="streamable-http", port=int(sys.argv[1]))
else:
    server.run()
