"""Runs from a script or a notebook: `run`, `resume`, `load`, `estimate`, and what a run has to show."""

from __future__ import annotations

import base64
import contextlib
import csv
import html
import json
import os
import tempfile
from typing import Any, Dict, List, Mapping, NoReturn, Optional, Sequence, Tuple, Union

from ._display import Chosen, one_line, view
from ._errors import Error, error
from ._program import Ended, Program, flags
from ._source import nameable

Path = Union[str, "os.PathLike[str]"]
Environment = Optional[Mapping[str, str]]

# Flags that every verb takes: which store, which settings.
EVERYWHERE = ("store", "queue", "config", "profile")

# Columns of exported questions that hold numbers, besides those of scores.
NUMBERS = ("recall_ms", "answer_ms", "judge_ms", "question_ms", "prompt_tokens", "completion_tokens", "usd", "attempts")
# Columns whose empty cells are empty texts, and nothing absent.
ALWAYS_TEXT = (
    *("question_id", "bank_id", "category", "outcome", "question", "retrieved", "evidence", "citations", "failures"),
    *("verdicts", "trace_id"),
)


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
) -> Union["Run", "Group"]:
    """Runs a benchmark and returns its run when it has ended.

    `system` is what `--system` takes (a name, "mine.py:Mine", "mine.yaml"), or a class, of a module or of a notebook's
    cell. `set` holds settings of the runner by their dotted names (`--set`). Every
    other flag of `bench-coord submit` is an argument of the same name: `top_k=20`, `controls=True`,
    `category=["temporal"]`, `store="postgres://…"`. `display` is "auto", "text", "notebook", "none" or a function that
    is given each snapshot of the progress. `cwd` is the folder in which `.bench` lies, `env` holds further variables
    for the program.

    Raises an `Error` of the program's exit code: also for a run that is INVALID (5) or below its `floor` (1), whose
    `Run` is then the error's `result`; with `check=False` these are returned. Ctrl-C stops the run so that `resume`
    goes on with it (`Interrupted`). With `repeats=N`, and with several systems, presets, datasets or seeds
    (`system="bm25,random"`, `dataset_seed=[1, 2]`), it returns a `Group` of runs.
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
    run: Union[str, "Run", "Group"],
    *,
    display: Chosen = "auto",
    check: bool = True,
    cwd: Optional[Path] = None,
    env: Environment = None,
    **more: Any,
) -> Union["Run", "Group"]:
    """Goes on with a run or a group of runs that was stopped, by its id, its name or "latest". Flags of
    `bench-coord resume` are arguments."""
    if isinstance(run, Measured):
        program = run.program
    else:
        program, more = place(cwd, env, more)
    return follow(program, ["resume", identifier(run), *flags(more)], display, check)


def load(
    run: str = "latest", *, cwd: Optional[Path] = None, env: Environment = None, **more: Any
) -> Union["Run", "Group"]:
    """A run of the store, or a group of runs, by its id, its name or "latest". `store`, `config` and `profile` say which
    store."""
    program, more = place(cwd, env, more)
    if more:
        raise TypeError(f"load() takes no {', '.join(more)}")
    return reported(program, run)


def place(cwd: Optional[Path], env: Environment, more: Mapping[str, Any]) -> Tuple[Program, Dict[str, Any]]:
    """The program where it is to work, and what is left of the flags."""
    everywhere = flags({key: more.get(key) for key in EVERYWHERE})
    left = {key: value for key, value in more.items() if key not in EVERYWHERE}
    return Program(None if cwd is None else os.fspath(cwd), env, everywhere), left


def identifier(run: Union["Measured", Path]) -> str:
    return run.id if isinstance(run, Measured) else os.fspath(run)


def side(run: Union["Measured", Path]) -> str:
    """What is compared or gated: a run, or repeats by their mean. A matrix has no figure of its own."""
    if isinstance(run, Group) and run.is_matrix:
        raise run.of_single_runs("what is compared or gated is a run, or repeats by their mean")
    return identifier(run)


def follow(program: Program, words: Sequence[str], display: Chosen, check: bool) -> Union["Run", "Group"]:
    """Carries out a verb that ends with a run, or with a group of runs."""
    shown = view(display)
    try:
        ended = program.follow([*words, "--json", "--display", "json-lines"], shown.show, shown.note)
    finally:
        shown.end()
    done = made(program, ended.json() if ended.code in (0, 1, 5) else None, ended.code)
    if done is None:
        failed = error(ended.code, ended.message())
        failed.run = ended.run
        raise failed
    if check and ended.code != 0:
        failed = error(ended.code, done.why(ended), done)
        failed.run = done.id
        raise failed
    return done


def reported(program: Program, run: str) -> Union["Run", "Group"]:
    """What the program reports of a word."""
    found = made(program, program.ask("report", run, "--format", "json").json())
    if found is None:
        raise error(4, f"the report of {run} is neither of a run nor of a group: {program.path} is of another version")
    return found


def made(program: Program, summary: Any, exit_code: int = 0) -> Union["Run", "Group", None]:
    """The run or the group that the program printed; None where it printed neither."""
    if not isinstance(summary, dict):
        return None
    # the report of a run names its group too
    if "run" in summary:
        return Run(program, summary, exit_code)
    if "group" in summary or "cells" in summary:
        return Group(program, summary, exit_code)
    return None


class Measured:
    """What a run and a group of runs have in common: a report, and that they are held against others."""

    #: What it is called.
    kind: str
    #: What `report` is told besides, to write all of its files.
    formats: Sequence[str] = ()

    def __init__(self, program: Program, summary: Mapping[str, Any], exit_code: int = 0) -> None:
        self.program = program
        self.summary: Record = records(summary)
        self.exit_code = exit_code
        self._files: Optional["tempfile.TemporaryDirectory[str]"] = None

    @property
    def id(self) -> str:
        raise NotImplementedError

    @property
    def reasons(self) -> List[str]:
        """Why it is INVALID."""
        raise NotImplementedError

    @property
    def page(self) -> str:
        """Path of the report as one page of HTML; it is gone when this object is."""
        return os.path.join(self.files(), "report.html")

    @property
    def pictures(self) -> Dict[str, str]:
        """The report's charts as SVG, by name: of a run "categories", "latency", "latency-probe"."""
        return svgs(self.files())

    def files(self) -> str:
        """A folder with the report's files, written from the store; it is gone when this object is."""
        if self._files is None:
            folder = tempfile.TemporaryDirectory(prefix="bench-coord-")
            self.program.ask("report", self.id, *self.formats, "--output-dir", folder.name)
            self._files = folder
        return self._files.name

    def compare(self, baseline: Union["Run", "Group", Path], check: bool = True, **more: Any) -> "Comparison":
        """Compares this with another one (a run, its id or name, or a folder), question by question: differences are
        this one's figure minus the baseline's. Repeats are compared by the means of their questions. Flags of
        `bench-coord compare` are arguments. What cannot be compared is an `Invalid` with the comparison as its
        `result`, or returned with `check=False`; of a matrix its runs are compared."""
        with tempfile.TemporaryDirectory(prefix="bench-coord-") as folder:
            words = ["compare", side(baseline), side(self), *flags(more), "--json", "--output-dir", folder]
            ended = self.program.ask(*words, fine=(0, 1, 5))
            seen = ended.json()
            if not isinstance(seen, dict):
                raise error(ended.code, ended.message())
            with open(os.path.join(folder, "comparison.md"), encoding="utf-8") as file:
                compared = Comparison(seen, file.read(), svgs(folder))
        if check and ended.code == 5:
            raise error(5, one_line("; ".join(seen.get("reasons") or [ended.message()])), compared)
        return compared

    def gate(self, baseline: Union["Run", "Group", Path, None] = None, **more: Any) -> "Gate":
        """Holds this against a baseline (a run, repeats, a folder, "last:3") and floors, as `bench-coord gate` does,
        whose flags are arguments: `floor=0.4`, `policy="policy.yaml"`. Of repeats their mean is held; of a matrix gate
        its runs. Look at `passed` and `reasons`."""
        given = {"baseline": None if baseline is None else side(baseline), **more}
        ended = self.program.ask("gate", side(self), *flags(given), "--json", fine=(0, 1, 5, 6))
        seen = ended.json()
        if not isinstance(seen, dict):
            raise error(ended.code, ended.message())
        return Gate(seen, ended.code)

    def report(self, full: bool = False) -> str:
        """The report as text: what fits a screen, or all of it."""
        return self.program.ask("report", self.id, *(["--full"] if full else [])).output

    @property
    def error(self) -> Optional[str]:
        """The code in which most of its questions ended that ended in an error, with the message that most of these were
        told; None where none did."""
        raise NotImplementedError

    def why(self, ended: Ended) -> str:
        """Why it did not end well."""
        reasons = self.reasons if ended.code == 5 else []
        reasons = [*reasons, *filter(None, [self.error])] if reasons else []
        return one_line(f"{self.kind} {self.id} is INVALID: " + "; ".join(reasons)) if reasons else ended.message()

    def __str__(self) -> str:
        return self.report()


class Group(Measured):
    """Runs that were started together: a run that was made several times (`repeats=3`), or a matrix of several systems,
    presets, datasets or seeds.

    `summary` is the group's report as `bench-coord report GROUP --json` has it: of repeats with `mean` and `stability`,
    of a matrix with its `cells` and `pairs`. Repeats are compared and gated by their mean; all else is of single `runs`.
    """

    kind = "group"

    @property
    def is_matrix(self) -> bool:
        """Whether its runs are the cells of a matrix, and no repeats of one run."""
        return "cells" in self.summary

    @property
    def _about(self) -> Record:
        return self.summary if self.is_matrix else self.summary["group"]

    @property
    def id(self) -> str:
        return str(self._about["id"])

    @property
    def name(self) -> Optional[str]:
        return self._about.get("name")

    @property
    def verdict(self) -> Optional[str]:
        """"VALID" where all of its runs are, "INVALID" where one is, or None while one has not ended."""
        parts = self.summary["cells"] if self.is_matrix else self.summary["runs"]
        verdicts = [part.get("verdict") for part in parts]
        if "INVALID" in verdicts:
            return "INVALID"
        # a cell has a verdict as soon as one of its runs has
        open_ = None in verdicts or any(part["ended"] < len(part["runs"]) for part in parts if self.is_matrix)
        return None if open_ else "VALID"

    @property
    def reasons(self) -> List[str]:
        """Why runs of it are INVALID, with their ids."""
        if self.is_matrix:
            ids = [id for cell in self.summary["cells"] if cell.get("verdict") == "INVALID" for id in cell["runs"]]
        else:
            ids = [one["id"] for one in self.summary["runs"] if one.get("verdict") == "INVALID"]
        runs = [run for run in map(self._run, ids) if run.verdict == "INVALID"]
        return [f"{run.id}: {'; '.join([*run.reasons, *filter(None, [run.error])])}" for run in runs]

    @property
    def error(self) -> Optional[str]:
        """None: the `reasons` have those of its runs."""
        return None

    @property
    def score(self) -> Optional[float]:
        """The mean of the headlines of repeats, from 0 to 1; None where nothing was scored, and of a matrix, whose
        `cells` have one each."""
        return (self.summary.get("mean") or {}).get("value")

    @property
    def interval(self) -> Optional[Tuple[float, float]]:
        """The 95 % interval of the mean, for conversations like these."""
        ci = (self.summary.get("mean") or {}).get("ci95")
        return (ci["low"], ci["high"]) if ci else None

    @property
    def ids(self) -> List[str]:
        """Ids of its runs, of a matrix cell by cell."""
        if self.is_matrix:
            return [id for cell in self.summary["cells"] for id in cell["runs"]]
        return [one["id"] for one in self.summary["runs"]]

    @property
    def runs(self) -> List["Run"]:
        """Each of them, as `load` gives it."""
        return [self._run(id) for id in self.ids]

    def _run(self, id: str) -> "Run":
        return Run(self.program, self.program.ask("report", id, "--format", "json").json())

    def questions(self, as_: Optional[str] = None) -> NoReturn:
        """Questions are of single runs: an `Error` that names one."""
        raise self.of_single_runs("questions are of single runs")

    def show(self, question: str) -> NoReturn:
        """Questions are of single runs: an `Error` that names one."""
        raise self.of_single_runs("questions are of single runs")

    def of_single_runs(self, why: str) -> Error:
        """The error of what a group cannot do as a whole."""
        known = f"{self.id} is a matrix" if self.is_matrix else f"{self.id} is a group of repeats"
        pairs = "; its summary.pairs has all pairs of its cells" if self.is_matrix else ""
        return error(2, f"{known}, and {why}: take one of its runs, such as {self.ids[0]}{pairs}")

    def __repr__(self) -> str:
        figure = f"{len(self.summary['cells'])} cells" if self.is_matrix else f"mean {self.score}"
        return one_line(f"<bench_coord.Group {self.id}: {len(self.ids)} runs, {figure}>")


class Run(Measured):
    """A run that has ended.

    `summary` is its `report.json`, with attributes: `run.summary.headline.value`. In a notebook it shows its figure,
    its charts and its warnings.
    """

    kind = "run"
    formats = ("--format", "terminal,json,md,html")

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
    def reasons(self) -> List[str]:
        return [str(reason) for reason in self.summary["run"].get("reasons") or []]

    @property
    def error(self) -> Optional[str]:
        errors = self.summary.get("errors") or {}
        if not errors:
            return None
        code = max(sorted(errors), key=lambda code: errors[code])
        said = (self.summary.get("error_examples") or {}).get(code)
        told = f"{errors[code]} of {self.summary['outcomes']['sample']} questions ended in {code}"
        return one_line(told if said is None else f"{told}: {short(said, 300)}")

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

    def __repr__(self) -> str:
        figure = "no score" if self.score is None else f"{self.summary['headline']['metric']} {100 * self.score:.1f} %"
        return one_line(f"<bench_coord.Run {self.id}: {self.verdict or self.summary['run'].get('status')}, {figure}>")

    def _repr_html_(self) -> str:
        about = self.summary["run"]
        rows = [("Run", self.name or self.id), ("Verdict", self.verdict or about.get("status") or "")]
        rows += [("Reason", reason) for reason in [*self.reasons, *filter(None, [self.error])]]
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
        return [one_line(line) for line in said]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        return f"<bench_coord.Gate {self['verdict']}>"


def flip_line(flip: Mapping[str, Any]) -> str:
    """A question that one run passed and the other did not."""

    def said(side: str) -> str:
        answer = (flip.get(side) or {}).get("answer")
        return "no answer" if answer is None else repr(short(answer))

    return one_line(
        f"{flip['direction']} {flip['question_id']}: {short(flip['question'], 120)} "
        f"expected {short(flip.get('gold'))!r}, before {said('a')}, now {said('b')}"
    )


def short(value: Any, most: int = 80) -> str:
    line = " ".join(one_line(value).split())
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
        f"<tr><th style='text-align:left'>{html.escape(one_line(name))}</th>"
        f"<td style='text-align:left'>{html.escape(one_line(value))}</td></tr>"
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
    # without a package that reads Parquet: the same columns, of which texts stay as they are ("None", "007")
    path = export("csv")
    with open(path, encoding="utf-8", newline="") as file:
        columns = next(csv.reader(file))
    texts = {column: str for column in columns if column not in NUMBERS and not column.startswith("score:")}
    absent = {column: [""] for column in columns if column not in ALWAYS_TEXT}
    return pandas.read_csv(path, keep_default_na=False, na_values=absent, dtype=texts)
