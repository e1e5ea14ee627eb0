"""Progress of a run while it goes on: a line of a terminal, lines of a log, or a bar of a notebook that is updated."""

from __future__ import annotations

import html
import os
import re
import shutil
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Union

# Seconds between two lines of a log.
BETWEEN_LINES = 10.0

# What does something else than being read, as the program has it (proto/src/text.rs): control characters of both sets, marks
# and overrides of the direction of writing, separators of lines, invisible marks and tags.
ACTS = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

Snapshot = Dict[str, Any]
Chosen = Union[str, Callable[[Snapshot], None], None]


def view(chosen: Chosen) -> "View":
    """What shows a run: "auto", "text", "notebook", "none", or a function that is given each snapshot."""
    if callable(chosen):
        return Hook(chosen)
    if chosen in (None, "none", False):
        return View()
    if chosen == "auto":
        chosen = "notebook" if notebook() is not None else "text"
    if chosen == "notebook":
        shell = notebook()
        return Bar() if shell is not None else Text()
    if chosen == "text":
        return Text()
    raise ValueError(f'display must be "auto", "text", "notebook", "none" or a function, it is {chosen!r}')


def notebook() -> Optional[Any]:
    """The shell of the notebook that this is one of, if any."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return shell if getattr(shell, "kernel", None) is not None else None


def one_line(words: Any) -> str:
    """Words of others as part of one line: they neither move the cursor of a terminal nor turn the direction of writing."""
    line = ACTS.sub(" ", str(words))
    # GitHub's runner obeys it wherever it stands in a line that a step prints
    return line.replace("##[", "## [") if os.environ.get("GITHUB_ACTIONS") == "true" else line


class View:
    """Shows nothing."""

    def show(self, snapshot: Snapshot) -> None:
        pass

    def note(self, line: str) -> None:
        pass

    def end(self) -> None:
        pass


class Hook(View):
    """Hands snapshots to a function."""

    def __init__(self, function: Callable[[Snapshot], None]) -> None:
        self.function = function

    def show(self, snapshot: Snapshot) -> None:
        self.function(snapshot)


class Text(View):
    """One line that changes on a terminal; elsewhere a line now and then."""

    def __init__(self) -> None:
        self.out = sys.stderr
        self.alone = bool(getattr(self.out, "isatty", lambda: False)())
        self.shown, self.last = "", float("-inf")

    def show(self, snapshot: Snapshot) -> None:
        line = " · ".join(parts(snapshot))
        if self.alone:
            width = max(20, shutil.get_terminal_size().columns - 1)
            self.out.write("\r" + line[:width].ljust(min(width, len(self.shown))))
            self.shown = line[:width]
        elif line != self.shown and time.monotonic() - self.last >= BETWEEN_LINES:
            self.out.write(line + "\n")
            self.shown, self.last = line, time.monotonic()
        self.out.flush()

    def note(self, line: str) -> None:
        self.end()
        self.out.write(one_line(line) + "\n")
        self.out.flush()

    def end(self) -> None:
        if self.alone and self.shown:
            self.out.write("\r" + " " * len(self.shown) + "\r")
            self.out.flush()
            self.shown = ""


class Bar(View):
    """A bar below the cell, updated in its place."""

    def __init__(self) -> None:
        from IPython import display as ipython

        self.ipython, self.handle = ipython, None
        self.notes: List[str] = []
        self.snapshot: Snapshot = {}

    def show(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.draw()

    def note(self, line: str) -> None:
        self.notes = [*self.notes, line][-8:]
        self.draw()

    def draw(self) -> None:
        page = self.ipython.HTML(self.page())
        if self.handle is None:
            self.handle = self.ipython.display(page, display_id=True)
        else:
            self.handle.update(page)

    def page(self) -> str:
        said = "<br>".join(html.escape(one_line(line)) for line in self.notes)
        if not self.snapshot:
            return f"<small>{said}</small>"
        done, of = self.snapshot.get("ended") or 0, self.snapshot.get("questions") or 0
        line = html.escape(" · ".join(parts(self.snapshot)))
        bar = f"<progress value='{done}' max='{max(of, 1)}' style='width:20em'></progress>"
        return f"<div>{bar} {line}</div><small>{said}</small>"


def parts(snapshot: Snapshot) -> List[str]:
    """What is said of a snapshot, as `bench-coord status` says it."""
    ready, banks = snapshot.get("banks_ready") or 0, snapshot.get("banks") or 0
    said = [f"{snapshot.get('ended') or 0}/{snapshot.get('questions') or 0} questions"]
    if ready < banks:
        said.append(f"{ready}/{banks} banks ready")
    if snapshot.get("score") is not None:
        # before the report it is a plain mean, without its weights; older builds do not say which of the two it is
        reported = snapshot.get("score_is_of_report")
        if reported is None:
            reported = (snapshot.get("ended") or 0) >= (snapshot.get("questions") or 0)
        said.append(f"{'score' if reported else 'mean so far'} {snapshot['score']:.3f}")
    if snapshot.get("infra_error"):
        said.append(f"{snapshot['infra_error']} infra_error")
    if snapshot.get("eta_seconds"):
        said.append(f"{duration(snapshot['eta_seconds'])} left")
    if snapshot.get("usd") or snapshot.get("usd_cap"):
        cap = f" of ${snapshot['usd_cap']:.2f}" if snapshot.get("usd_cap") else ""
        said.append(f"${snapshot.get('usd') or 0:.4f}{cap}")
    probe, waits = snapshot.get("latency_probe"), snapshot.get("waits")
    if isinstance(probe, dict):
        said.append(f"latency probe {probe.get('made')}/{probe.get('of')}")
    for away in snapshot.get("outages") or []:
        said.append(f"{away.get('key')} is away: {away.get('reason')}")
    if isinstance(waits, dict) and waits.get("reason"):
        said.append(f"waits for another try: {waits['reason']}")
    return [one_line(part) for part in said]


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
