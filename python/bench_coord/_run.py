"""Runs from a script or a notebook: `run`, `resume`, `load`, `estimate`, and what a run has to show."""

from __future__ import annotations

import base64
import contextlib
import html
import json
import os
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from ._display import Chosen, view
from ._errors import error
from ._program import Ended, Program, flags
from ._source import nameable

Path = Union[str, "os.PathLike[str]"]
Environment = Optional[Mapping[str, str]]

# Flags that every verb takes: which store, which settings.
EVERYWHERE = ("store", "queue", "config", "profile")


class Record(Dict[str, Any]):
    """An object of JSON whose fields are attributes too: `record.headline.value` is `record["headline"]["value"]`."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no '{name}', there are: {', '.join(map(str, self))}") from None

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *(key for key in self if isinstance(key, str) and key.isidentifier())]


def records(value: Any) -> Any:
    """JSON with its objects as records."""
    if isinstance(value, dict):
        return Record((key, records(one)) for key, one in value.items())
    return [records(one) for one in value] if isinstance(value, list) else value


def run(
    dataset: Optional[str] = None,
    preset: Optional[str] = None,
    system: Any = None,
    *,
    answerer: Optional[str] = None,
    judge: Union[str, Sequence[str], None] = None,
    name: Optional[str] = None,
    max_cost: Optional[float] = None,
    set: Optional[Mapping[str, Any]] = None,
    display: Chosen = "auto",
    check: bool = True,
    cwd: Optional[Path] = None,
    env: Environment = None,
    **more: Any,
) -> "Run":
    """Runs a benchmark and returns its run when it has ended.

    `system` is what `--system` takes (a name, "mine.py:Mine", "mine.yaml"), or a class, of a module or of a notebook's
    cell. `set` holds settings of the runner by their dotted names (`--set`). Every
    other flag of `bench-coord submit` is an argument of the same name: `top_k=20`, `controls=True`,
    `category=["temporal"]`, `store="postgres://…"`. `display` is "auto", "text", "notebook", "none" or a function that
    is given each snapshot of the progress. `cwd` is the folder in which `.bench` lies, `env` holds further variables
    for the program.

    Raises an `Error` of the program's exit code: also for a run that is INVALID (5) or below its `floor` (1), whose
    `Run` is then the error's `result`; with `check=False` these are returned. Ctrl-C stops the run so that `resume`
    goes on with it (`Interrupted`). With `repeats=N` it returns a `Group` of runs.
    """
    program, more = place(cwd, env, more)
    given = {"dataset": dataset, "preset": preset, "answerer": answerer, "judge": judge, "name": name, "max_cost": max_cost}
    with nameable(system) as named:
        words = ["submit", *flags({**given, "system": named, "set": set, **more})]
        return follow(program, words, display, check)


def estimate(
    dataset: Optional[str] = None,
    preset: Optional[str] = None,
    system: Any = None,
    *,
    set: Optional[Mapping[str, Any]] = None,
    cwd: Optional[Path] = None,
    env: Environment = None,
    **more: Any,
) -> Record:
    """What `run` with the same arguments would cost: calls, tokens, dollars, minutes. Nothing is started or stored."""
    program, more = place(cwd, env, more)
    with nameable(system) as named:
        given = {"dataset": dataset, "preset": preset, "system": named, "set": set}
        return records(program.ask("estimate", *flags({**given, **more}), "--json").json())


def resume(
    run: Union[str, "Run"],
    *,
    display: Chosen = "auto",
    check: bool = True,
    cwd: Optional[Path] = None,
    env: Environment = None,
    **more: Any,
) -> "Run":
    """Goes on with a run that was stopped, by its id, its name or "latest". Flags of `bench-coord resume` are
    arguments."""
    if isinstance(run, Run):
        program = run.program
    else:
        program, more = place(cwd, env, more)
    return follow(program, ["resume", identifier(run), *flags(more)], display, check)


def load(run: str = "latest", *, cwd: Optional[Path] = None, env: Environment = None, **more: Any) -> "Run":
    """A run of the store, by its id, its name or "latest". `store`, `config` and `profile` say which store."""
    program, more = place(cwd, env, more)
    if more:
        raise TypeError(f"load() takes no {', '.join(more)}")
    return Run(program, program.ask("report", run, "--format", "json").json())


def place(cwd: Optional[Path], env: Environment, more: Mapping[str, Any]) -> Tuple[Program, Dict[str, Any]]:
    """The program where it is to work, and what is left of the flags."""
    everywhere = flags({key: more.get(key) for key in EVERYWHERE})
    left = {key: value for key, value in more.items() if key not in EVERYWHERE}
    return Program(None if cwd is None else os.fspath(cwd), env, everywhere), left


def identifier(run: Union["Run", Path]) -> str:
    return run.id if isinstance(run, Run) else os.fspath(run)


def follow(program: Program, words: Sequence[str], display: Chosen, check: bool) -> Any:
    """Carries out a verb that ends with a run, or with a group of runs."""
    shown = view(display)
    try:
        ended = program.follow([*words, "--json", "--display", "json-lines"], shown.show, shown.note)
    finally:
        shown.end()
    summary = ended.json() if ended.code in (0, 1, 5) else None
    if isinstance(summary, dict) and "group" in summary and "run" not in summary:
        group = Group(program, summary, ended.code)
        if check and ended.code != 0:
            raise error(ended.code, ended.message(), group)
        return group
    if not isinstance(summary, dict) or "run" not in summary:
        failed = error(ended.code, ended.message())
        failed.run = ended.run
        raise failed
    done = Run(program, summary, ended.code)
    if check and ended.code != 0:
        failed = error(ended.code, done.why(ended), done)
        failed.run = done.id
        raise failed
    return done


class Group:
    """Runs that were started together: a run that was made several times (`repeats=3`).

    `summary` is the group's report as `bench-coord report GROUP --json` has it.
    """

    def __init__(self, program: Program, summary: Mapping[str, Any], exit_code: int = 0) -> None:
        self.program = program
        self.summary: Record = records(summary)
        self.exit_code = exit_code

    @property
    def id(self) -> str:
        return str(self.summary["group"]["id"])

    @property
    def score(self) -> Optional[float]:
        """The mean of the headlines, from 0 to 1; None where nothing was scored."""
        return (self.summary.get("mean") or {}).get("value")

    @property
    def interval(self) -> Optional[Tuple[float, float]]:
        """The 95 % interval of the mean, for conversations like these."""
        ci = (self.summary.get("mean") or {}).get("ci95")
        return (ci["low"], ci["high"]) if ci else None

    @property
    def runs(self) -> List["Run"]:
        """Each of them, as `load` gives it."""
        ids = [one["id"] for one in self.summary.get("runs") or []]
        return [Run(self.program, self.program.ask("report", id, "--format", "json").json()) for id in ids]

    def report(self, full: bool = False) -> str:
        """The report as text."""
        return self.program.ask("report", self.id, *(["--full"] if full else [])).output

    def __repr__(self) -> str:
        return f"<bench_coord.Group {self.id}: {len(self.summary.get('runs') or [])} runs, mean {self.score}>"


class Run:
    """A run that has ended.

    `summary` is its `report.json`, with attributes: `run.summary.headline.value`. In a notebook it shows its figure,
    its charts and its warnings.
    """

    def __init__(self, program: Program, summary: Mapping[str, Any], exit_code: int = 0) -> None:
        self.program = program
        self.summary: Record = records(summary)
        self.exit_code = exit_code
        self._files: Optional["tempfile.TemporaryDirectory[str]"] = None

    @property
    def id(self) -> str:
        return str(self.summary["run"]["id"])

    @property
    def name(self) -> Optional[str]:
        return self.summary["run"].get("name")

    @property
    def verdict(self) -> Optional[str]:
        """"VALID", "INVALID", or None for a run that has not ended."""
        return self.summary["run"].get("verdict")

    @property
    def score(self) -> Optional[float]:
        """The headline, from 0 to 1; None where nothing was scored."""
        headline = self.summary.get("headline")
        return headline.get("value") if headline else None

    @property
    def interval(self) -> Optional[Tuple[float, float]]:
        """The 95 % interval of the score, for conversations like these."""
        headline = self.summary.get("headline")
        ci = headline.get("ci95") if headline else None
        return (ci["low"], ci["high"]) if ci else None

    @property
    def page(self) -> str:
        """Path of the report as one page of HTML; it is gone when this object is."""
        return os.path.join(self.files(), "report.html")

    @property
    def pictures(self) -> Dict[str, str]:
        """The report's charts as SVG, by name: "categories", "latency", "latency-probe"."""
        return svgs(self.files())

    def files(self) -> str:
        """A folder with the report's files, written from the store; it is gone when this object is."""
        if self._files is None:
            folder = tempfile.TemporaryDirectory(prefix="bench-coord-")
            self.program.ask("report", self.id, "--format", "terminal,json,md,html", "--output-dir", folder.name)
            self._files = folder
        return self._files.name

    def questions(self, as_: Optional[str] = None) -> Any:
        """All questions of the run with their answers, scores, hits and judgements: a list of dicts as in
        `questions.jsonl`, or a frame with a row for each, `as_` "pandas", "polars" or "arrow" (where that package is
        installed)."""
        with tempfile.TemporaryDirectory(prefix="bench-coord-") as folder:
            if as_ is None:
                self.program.ask("export", self.id, "--format", "jsonl", "--output-dir", folder)
                with open(os.path.join(folder, "questions.jsonl"), encoding="utf-8") as lines:
                    return [records(json.loads(line)) for line in lines]
            return frame(as_, lambda format: self._export(format, folder))

    def _export(self, format: str, folder: str) -> str:
        self.program.ask("export", self.id, "--format", format, "--raw-csv", "--output-dir", folder)
        return os.path.join(folder, f"questions.{format}")

    def show(self, question: str) -> Record:
        """Everything that is known of one question: as `questions` has it, with the evidence that was missed."""
        return records(self.program.ask("show", self.id, question, "--json").json())

    def compare(self, baseline: Union["Run", Path], check: bool = True, **more: Any) -> "Comparison":
        """Compares this run with another one (a run, its id or name, or a folder), question by question: differences
        are this run's figure minus the baseline's. Flags of `bench-coord compare` are arguments. Runs that cannot be
        compared are an `Invalid` with the comparison as its `result`, or returned with `check=False`."""
        with tempfile.TemporaryDirectory(prefix="bench-coord-") as folder:
            words = ["compare", identifier(baseline), self.id, *flags(more), "--json", "--output-dir", folder]
            ended = self.program.ask(*words, fine=(0, 1, 5))
            seen = ended.json()
            if not isinstance(seen, dict):
                raise error(ended.code, ended.message())
            with open(os.path.join(folder, "comparison.md"), encoding="utf-8") as file:
                compared = Comparison(seen, file.read(), svgs(folder))
        if check and ended.code == 5:
            raise error(5, "; ".join(seen.get("reasons") or [ended.message()]), compared)
        return compared

    def gate(self, baseline: Union["Run", Path, None] = None, **more: Any) -> "Gate":
        """Holds this run against a baseline (a run, a folder, "last:3") and floors, as `bench-coord gate` does, whose
        flags are arguments: `floor=0.4`, `policy="policy.yaml"`. Look at `passed` and `reasons`."""
        given = {"baseline": None if baseline is None else identifier(baseline), **more}
        ended = self.program.ask("gate", self.id, *flags(given), "--json", fine=(0, 1, 5, 6))
        seen = ended.json()
        if not isinstance(seen, dict):
            raise error(ended.code, ended.message())
        return Gate(seen, ended.code)

    def report(self, full: bool = False) -> str:
        """The report as text: what fits a screen, or all of it."""
        return self.program.ask("report", self.id, *(["--full"] if full else [])).output

    def why(self, ended: Ended) -> str:
        """Why it did not end well."""
        reasons = self.summary["run"].get("reasons") or []
        if ended.code == 5 and reasons:
            return f"run {self.id} is INVALID: " + "; ".join(map(str, reasons))
        return ended.message()

    def __str__(self) -> str:
        return self.report()

    def __repr__(self) -> str:
        figure = "no score" if self.score is None else f"{self.summary['headline']['metric']} {100 * self.score:.1f} %"
        return f"<bench_coord.Run {self.id}: {self.verdict or self.summary['run'].get('status')}, {figure}>"

    def _repr_html_(self) -> str:
        about = self.summary["run"]
        rows = [("Run", self.name or self.id), ("Verdict", self.verdict or about.get("status") or "")]
        rows += [("Reason", str(reason)) for reason in about.get("reasons") or []]
        if self.score is not None:
            low_high = self.interval
            between = f", 95 % interval {100 * low_high[0]:.1f} to {100 * low_high[1]:.1f} %" if low_high else ""
            rows.append((str(self.summary["headline"]["metric"]), f"{100 * self.score:.1f} %{between}"))
        outcomes = self.summary.get("outcomes") or {}
        rows.append(("Coverage", f"{100 * (outcomes.get('coverage') or 0):.0f} % of {outcomes.get('sample')} questions"))
        rows += [("Warning", str(warning)) for warning in self.summary.get("warnings") or []]
        return table(rows) + inline(self.pictures)


class Comparison(Record):
    """Two runs, question by question, as `bench-coord compare --json` has it: `verdict`, `paired`, `flips`,
    `by_category` …"""

    def __init__(self, seen: Mapping[str, Any], markdown: str, pictures: Dict[str, str]) -> None:
        super().__init__(records(dict(seen)))
        self.__dict__.update(markdown=markdown, pictures=pictures)

    def __str__(self) -> str:
        return str(self.__dict__["markdown"])

    def __repr__(self) -> str:
        verdict = self["verdict"] if self["comparable"] else "NOT COMPARABLE"
        difference = (self.get("paired") or {}).get("difference")
        points = "" if difference is None else f", {100 * difference:+.2f} points"
        return f"<bench_coord.Comparison {verdict}{points}, {len(self.get('flips') or [])} flips>"

    def _repr_html_(self) -> str:
        rows = [("Verdict", self["verdict"] if self["comparable"] else "NOT COMPARABLE")]
        rows += [("Reason", str(reason)) for reason in self.get("reasons") or []]
        paired = self.get("paired")
        if paired and self["comparable"]:
            ci = paired.get("ci95") or {}
            between = f", 95 % interval {100 * ci['low']:+.2f} to {100 * ci['high']:+.2f}" if ci else ""
            rows.append((str(self.get("metric")), f"{100 * paired['difference']:+.2f} points{between}"))
        flips = [flip_line(flip) for flip in (self.get("flips") or [])[:20]]
        listed = "".join(f"<li>{html.escape(line)}</li>" for line in flips)
        return table(rows) + inline(self.__dict__["pictures"]) + (f"<ul>{listed}</ul>" if flips else "")


class Gate(Record):
    """What a gate found, as `bench-coord gate --json` has it: `verdict`, `checks`, `reasons`, `comparison`."""

    def __init__(self, seen: Mapping[str, Any], exit_code: int) -> None:
        super().__init__(records(dict(seen)))
        self["exit_code"] = exit_code

    @property
    def passed(self) -> bool:
        return bool(self["exit_code"] == 0)

    def lines(self, most_flips: int = 20) -> List[str]:
        """What was found, for people: the verdict, its reasons, the rules that did not pass, the questions that
        flipped."""
        said = [f"{self['verdict']}: {self['run']} against {self.get('baseline') or 'its floors'}"]
        said += [f"  {reason}" for reason in self.get("reasons") or []]
        for check in self.get("checks") or []:
            if check["outcome"] not in ("pass", "not_checked", "not checked"):
                said.append(f"  {check['rule']} ({check['level']}): {check['outcome']}, {check['detail']}")
        compared = self.get("comparison") or {}
        flips = sorted(compared.get("flips") or [], key=lambda flip: flip["direction"] != "lost")
        counts = compared.get("flip_counts") or {}
        if flips:
            said.append(f"flips: {counts.get('lost')} lost, {counts.get('won')} won")
            said += [f"  {flip_line(flip)}" for flip in flips[:most_flips]]
            if len(flips) > most_flips:
                said.append(f"  … {len(flips) - most_flips} more in the comparison")
        return said

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<bench_coord.Gate {self['verdict']}>"


def flip_line(flip: Mapping[str, Any]) -> str:
    """A question that one run passed and the other did not."""

    def said(side: str) -> str:
        answer = (flip.get(side) or {}).get("answer")
        return "no answer" if answer is None else repr(short(answer))

    return (
        f"{flip['direction']} {flip['question_id']}: {short(flip['question'], 120)} "
        f"expected {short(flip.get('gold'))!r}, before {said('a')}, now {said('b')}"
    )


def short(value: Any, most: int = 80) -> str:
    line = " ".join(str(value).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def svgs(folder: str) -> Dict[str, str]:
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".svg"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[name[: -len(".svg")]] = file.read()
    return found


def table(rows: Sequence[Tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th><td style='text-align:left'>{html.escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table>{cells}</table>"


def inline(pictures: Mapping[str, str]) -> str:
    """Charts as images: their styles do not reach the rest of the page."""
    images = []
    for name, svg in pictures.items():
        data = base64.b64encode(svg.encode()).decode()
        images.append(f"<img alt='{html.escape(name)}' src='data:image/svg+xml;base64,{data}'>")
    return "".join(f"<div>{image}</div>" for image in images)


def frame(kind: str, export: Any) -> Any:
    """A frame of what `export` writes in a format and says the path of."""
    if kind == "polars":
        import polars

        return polars.read_parquet(export("parquet"))
    if kind == "arrow":
        from pyarrow import parquet

        return parquet.read_table(export("parquet"))
    if kind != "pandas":
        raise ValueError(f'as_ must be "pandas", "polars" or "arrow", it is {kind!r}')
    import pandas

    with contextlib.suppress(ImportError):
        return pandas.read_parquet(export("parquet"))
    # without a package that reads Parquet: the same columns
    return pandas.read_csv(export("csv"))
