"""Finds the program `bench-coord` and runs its verbs."""

from __future__ import annotations

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from ._display import one_line
from ._errors import Interrupted, Unavailable, UsageError, error

# Lines that are kept of what the program says beside its result.
MOST_LINES = 400
# The line that names a run, or a group of runs, when it begins.
BEGINS = re.compile(r"(?:run|group|matrix) ([^\s:]+): ")

# Flags whose value may be "off": False says so.
CAN_BE_OFF = ("cache", "latency_probe")
# Flags without a value: False is as if they were not given. Of any other one it says nothing.
SWITCHES = (
    *("advisory", "allow_inconclusive", "allow_modified_dataset", "allow_unfiltered", "canonical_judge", "clean_after"),
    *("controls", "detach", "dry_run", "json", "keep_banks", "meter", "no_canaries", "no_stop", "plan"),
    *("print_policy", "release_uncertain", "reopen", "repeat_ingest", "reuse_banks", "trace_content", "unpriced_ok"),
    *("verbose", "yes"),
)

Snapshot = Dict[str, Any]


def find() -> str:
    """Path of the program: `BENCH_COORD`, else the one that this package was installed with, else that of `PATH`."""
    named = os.environ.get("BENCH_COORD")
    if named:
        if os.access(named, os.X_OK) and os.path.isfile(named):
            return os.path.abspath(named)
        raise Unavailable(f"BENCH_COORD is {named}, which is no program: give the path of bench-coord")
    program = "bench-coord" + (sysconfig.get_config_var("EXE") or "")
    for folder in installed():
        path = os.path.join(folder, program)
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    found = shutil.which(program)
    if found:
        return found
    raise Unavailable(
        "the program bench-coord was not found: it is neither installed with this package nor on PATH; "
        "put it there, or give its path in the variable BENCH_COORD"
    )


def installed() -> Iterator[str]:
    """Folders into which an installation of this package puts programs."""
    yield sysconfig.get_path("scripts")
    with_user = {"posix": "posix_user", "nt": "nt_user"}.get(os.name)
    if with_user in sysconfig.get_scheme_names():
        yield sysconfig.get_path("scripts", scheme=with_user)
    # pip install --target
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")


class Ended:
    """What a verb came to: its exit code, its result, what it said beside it, and the run that it named."""

    def __init__(self, code: int, output: str, said: Sequence[str], run: Optional[str]) -> None:
        self.code, self.output, self.said, self.run = code, output, said, run

    def message(self) -> str:
        """Why it failed: what stands behind `error:`, else its last words."""
        for at in range(len(self.said) - 1, -1, -1):
            if self.said[at].startswith("error: "):
                return "\n".join([self.said[at][len("error: ") :], *self.said[at + 1 :]]).strip()
        # a command that is offered stands behind blanks, below what offers it: neither says why
        nexts = [*self.said[1:], ""]
        own = zip(self.said, nexts)
        last = [line for line, below in own if line.strip() and not line.startswith(" ") and not below.startswith("  ")]
        return last[-1] if last else f"bench-coord ended with {self.code} and said nothing"

    def json(self) -> Any:
        """Its result, where it printed one."""
        return json.loads(self.output) if self.output.strip() else None


class Program:
    """The program with what holds for all of its verbs: where it works, its variables, its store and settings."""

    def __init__(
        self,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        options: Sequence[str] = (),
    ) -> None:
        self.path, self.options = find(), list(options)
        self.cwd = os.path.abspath(cwd or os.curdir)
        self.env = {**os.environ, **(env or {})}
        if sys.prefix != sys.base_prefix:
            # a class is run by the virtual environment that runs this, activated or not
            self.env.setdefault("VIRTUAL_ENV", sys.prefix)

    def ask(self, *words: str, fine: Tuple[int, ...] = (0,)) -> Ended:
        """Runs a verb to its end. Any exit code that is not `fine` is an exception."""
        ended = self.follow(words)
        if ended.code not in fine:
            raise error(ended.code, ended.message())
        return ended

    def follow(
        self,
        words: Sequence[str],
        show: Callable[[Snapshot], None] = lambda snapshot: None,
        note: Callable[[str], None] = lambda line: None,
    ) -> Ended:
        """Runs a verb, and hands over its progress and what it says while it does. Ctrl-C is passed on to it, once to
        stop so that it can be resumed, twice to stop at once."""
        command = [self.path, *words, *self.options]
        try:
            # a session of its own: a Ctrl-C reaches it once, from here
            child = subprocess.Popen(
                command,
                cwd=self.cwd,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as why:
            raise Unavailable(f"{self.path} cannot be started: {why}") from why
        output: List[bytes] = []
        reader = threading.Thread(target=lambda: output.append(child.stdout.read()), daemon=True)
        reader.start()
        heard = Heard(show, note)
        interrupted = False
        try:
            while True:
                try:
                    line = child.stderr.readline()
                    if not line:
                        break
                    heard.line(line.decode("utf-8", "replace").rstrip("\n"))
                except KeyboardInterrupt:
                    interrupted = True
                    child.send_signal(signal.SIGINT)
            code = child.wait()
        except BaseException:
            # what shows progress failed: the run stops as after Ctrl-C, and nothing is left behind
            child.send_signal(signal.SIGINT)
            child.stderr.read()
            child.wait()
            raise
        finally:
            reader.join()
            child.stdout.close()
            child.stderr.close()
        ended = Ended(code, output[0].decode("utf-8", "replace") if output else "", list(heard.said), heard.run)
        if interrupted and code not in (0, 1, 5):
            go_on = f'stopped; bench_coord.resume("{heard.run}") goes on' if heard.run else "stopped before there was a run"
            raise Interrupted(go_on, heard.run) from None
        return ended


class Heard:
    """What a program says while it works: snapshots of its progress, and lines for people."""

    def __init__(self, show: Callable[[Snapshot], None], note: Callable[[str], None]) -> None:
        self.show, self.note = show, note
        self.said: "collections.deque[str]" = collections.deque(maxlen=MOST_LINES)
        self.run: Optional[str] = None

    def line(self, line: str) -> None:
        if line.startswith('{"run":'):
            try:
                snapshot = json.loads(line)
            except ValueError:
                snapshot = None
            if isinstance(snapshot, dict):
                self.run = self.run or snapshot.get("run")
                self.show(snapshot)
                return
        line = one_line(line)
        begins = BEGINS.match(line)
        if begins:
            self.run = self.run or begins.group(1)
        self.said.append(line)
        self.note(line)


def flags(given: Mapping[str, Any]) -> List[str]:
    """Arguments of a function as flags of a verb: `top_k=20` is `--top-k 20`, True a flag alone, a list the flag once
    for each, a mapping `--set KEY=VALUE` for each. None is as if it were not given, in a mapping too."""
    words: List[str] = []
    for key, value in given.items():
        name = key.rstrip("_")
        flag = "--" + name.replace("_", "-")
        if value is None:
            continue
        if value is False:
            words += off(name, flag)
        elif value is True:
            words.append(flag)
        elif isinstance(value, Mapping):
            for setting, one in value.items():
                if one is not None:
                    words += [flag, f"{setting}={text(one)}"]
        elif hasattr(value, "__iter__") and not isinstance(value, (str, bytes, os.PathLike)):
            for one in several(name, value):
                words += joined(flag, text(one))
        else:
            words += joined(flag, text(value))
    return words


def off(name: str, flag: str) -> List[str]:
    """The words of a flag that is False."""
    if name in CAN_BE_OFF:
        return [flag, "off"]
    if name not in SWITCHES:
        raise UsageError(f"{name}=False says nothing: {flag} takes a value; leave it out, or give one")
    return []


def several(name: str, values: Any) -> List[Any]:
    """The values of a flag that is given once for each. None at all would be as if it were not given: everything."""
    listed = ordered(values) if isinstance(values, (set, frozenset)) else list(values)
    if not listed:
        raise UsageError(f"{name} is empty: leave it out, or name what it is to hold")
    if any(one is None for one in listed):
        raise UsageError(f"{name} holds None: leave that out")
    return listed


def ordered(values: Any) -> List[Any]:
    """A set as a list, the same one each time."""
    return sorted(values, key=lambda one: (type(one).__name__, one if isinstance(one, (int, float)) else 0, str(one)))


def joined(flag: str, value: str) -> List[str]:
    """A flag and its value, in one word where the value looks like another flag."""
    return [f"{flag}={value}"] if value.startswith("-") else [flag, value]


def text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (set, frozenset)):
        value = ordered(value)
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value)
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)
