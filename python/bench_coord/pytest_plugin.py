"""Runs a gate as a test.

    @pytest.mark.bench_gate(dataset="locomo", preset="fair", system="mine.py:Mine", baseline="last:3")
    def test_memory_is_no_worse(bench_run):
        assert bench_run.summary.outcomes.coverage > 0.99

The marker takes the arguments of `bench_coord.run` and those of a gate: `baseline`, `floor`, `policy`, `metric`,
`under_test`, `allow_inconclusive`. Where nothing was run before there is no baseline: the test fails, or with
`first_run="pass"` its floor and policy alone are held, with a warning. A baseline of a name that no run has is then the
newest run of the same kind, where there is one. The run is made before the test, which then fails when the gate does
not pass, with the questions that flipped; its body, if any, looks at the run besides. A run that cannot be made is an
error and no failure. With `repeats=3` it is the `Group` of these, whose mean the gate holds. A matrix has no gate.
Methods of `unittest.TestCase` are held by the marker too; they have no `bench_run` to look at.
"""

from __future__ import annotations

import os
import warnings
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from . import _errors
from ._display import one_line

MARKER = "bench_gate"
# Arguments that are the gate's.
OF_GATE = ("baseline", "policy", "floor", "metric", "under_test", "allow_inconclusive")
# What becomes of a test whose run is the first of its kind, so that nothing is there to hold it against.
FIRST_RUN = ("fail", "pass")
# What the program says then, and how it ends: of `last:3`, and of a run that is named. Both codes have other causes too.
NOTHING_BEFORE = ("no finished, VALID run before ", 5)
NO_RUN = ("no run '", 2)
# What is held against where the baseline's name is no run's: it may be mistyped, or its run deleted.
NEWEST = "last:1"
# Arguments that make a matrix when they have several values.
OF_MATRIX = ("dataset", "preset", "system", "dataset_seed")
# What was measured, for the lines at the end, as a property of the test: its report brings it along, also from another
# process (pytest-xdist).
SEEN = "bench_coord_gate"
# The baseline as it was before the run of the test, which may have the same name.
BASELINE = pytest.StashKey[Any]()
# Whether nobody had a run of the baseline's name then.
NO_BASELINE = pytest.StashKey[bool]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(dataset, preset, system, baseline=None, floor=None, first_run='fail', …): runs a benchmark, and fails "
        "where its gate does (arguments of bench_coord.run and of Run.gate)",
    )
    config.pluginmanager.register(Seen(), "bench_coord_seen")


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    for item in items:
        marked = isinstance(item, pytest.Function) and item.get_closest_marker(MARKER) is not None
        if marked and "bench_run" not in item.fixturenames:
            item.fixturenames.insert(0, "bench_run")


def arguments(item: Any) -> Tuple[Dict[str, Any], Dict[str, Any], str]:
    """Arguments of the run, those of the gate, and what becomes of a first run. Markers of a class or module are what those of a test begin with."""
    given: Dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers(MARKER))):
        given.update(marker.kwargs)
        given.update(zip(("dataset", "preset", "system"), marker.args))
    if not given:
        raise pytest.UsageError(f"bench_run is for tests with @pytest.mark.{MARKER}(dataset=…, system=…)")
    of_gate = {key: given.pop(key) for key in OF_GATE if key in given}
    first_run = given.pop("first_run", "fail")
    if first_run not in FIRST_RUN:
        raise pytest.UsageError(f"first_run is one of {FIRST_RUN}, and not {first_run!r}")
    return given, of_gate, first_run


@pytest.fixture
def bench_run(request: pytest.FixtureRequest, record_property: Any) -> Iterator[Any]:
    """The run of the test's marker, a `bench_coord.Run`, or the `bench_coord.Group` of several. One that is INVALID is
    there too: its gate does not pass."""
    from . import _run

    given, of_gate, first_run = arguments(request.node)
    try:
        baseline, is_missing = look_for(of_gate.get("baseline"), given, first_run)
        request.node.stash[BASELINE], request.node.stash[NO_BASELINE] = baseline, is_missing
        if holds(of_gate):
            refuse_matrix(given)
        run = _run.run(**{"display": "text", **given, "check": False})
    except _errors.Error as refused:
        problem = f"there is no run to test (exit {refused.exit_code}): {refused.message}"
    else:
        problem = None
    if problem is not None:
        pytest.fail(problem, pytrace=False)
    record_property("bench_coord_run", run.id)
    record_property("bench_coord_score", run.score)
    yield run


def look_for(baseline: Any, given: Dict[str, Any], first_run: str) -> Tuple[Any, bool]:
    """The baseline, and whether another one takes its place because there is none of its name, although that may be. One
    that is not there is found before the run, which may cost money."""
    from . import _run

    if isinstance(baseline, str) and not baseline.startswith("last:") and not os.path.exists(baseline):
        where = {key: given[key] for key in ("cwd", "env", *_run.EVERYWHERE) if key in given}
        try:
            baseline = _run.load(baseline, **where)
        except _errors.UsageError as refused:
            if first_run == "pass" and is_told(refused, NO_RUN):
                return NEWEST, True
            raise
    if baseline is not None:
        _run.side(baseline)
    return baseline, False


def is_told(refused: _errors.Error, of: Tuple[str, int]) -> bool:
    """Whether the program refused for this reason: no JSON of it says so."""
    said, exit_code = of
    return refused.exit_code == exit_code and said in refused.message


def refuse_matrix(given: Dict[str, Any]) -> None:
    """A matrix that no gate can hold is found before it is run."""
    from . import _run

    # the program knows which values are several: it is asked where they may be
    values = [given.get(key) for key in OF_MATRIX]
    if given.get("dataset") == "all" or any(isinstance(value, (list, tuple)) or "," in str(value) for value in values):
        planned = _run.estimate(**{key: value for key, value in given.items() if key not in ("display", "check")})
        if "cells" in planned:
            raise _errors.UsageError(
                "a gate is of a run or of repeats, and these arguments make a matrix: give one dataset, preset, system and "
                "seed, and each of the others a test of its own"
            )


def holds(of_gate: Dict[str, Any]) -> bool:
    """Whether there is something to hold a run against."""
    return any(of_gate.get(key) is not None for key in ("baseline", "floor", "policy"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """The gate, before the body of the test, whoever carries that out."""
    if isinstance(item, pytest.Function) and item.get_closest_marker(MARKER) is not None:
        _, of_gate, first_run = arguments(item)
        if "baseline" in of_gate:
            of_gate["baseline"] = item.stash.get(BASELINE, of_gate["baseline"])
        run = item.funcargs["bench_run"]
        if item.stash.get(NO_BASELINE, False):
            said = f"no run has the name of the baseline: {run!r} is held against the newest run of its kind before it"
            warnings.warn(pytest.PytestWarning(f"{item.nodeid}: {said}"))
        hold(item, run, of_gate, first_run)


def hold(item: pytest.Function, run: Any, of_gate: Dict[str, Any], first_run: str) -> None:
    """Fails the test when the gate does not pass."""
    if not holds(of_gate):
        if run.exit_code != 0:
            pytest.fail(one_line("; ".join(why(run))), pytrace=False)
        note(item, f"{item.nodeid}: {run!r}, no baseline, floor or policy")
        return
    try:
        gate, refused = run.gate(**of_gate), None
    except _errors.Error as error:
        gate, refused = None, error
    if refused is not None:
        is_first = of_gate.get("baseline") is not None and is_told(refused, NOTHING_BEFORE)
        if is_first and first_run == "pass":
            hold_first(item, run, of_gate)
            return
        problem = f"the gate cannot be held (exit {refused.exit_code}): {refused.message}"
        pytest.fail("\n".join([problem, *(FIRST_ADVICE if is_first else [])]), pytrace=False)
    note(item, f"{item.nodeid}: {gate['verdict']}, {run!r}")
    if not gate.passed:
        error = [] if run.error is None else [run.error]
        pytest.fail("\n".join([*gate.lines(), *error, "", repr(run)]), pytrace=False)


# What to do about a first run.
FIRST_ADVICE = [
    "It is the first of its kind in this store: a further one is held against it. Before a first one, make the baseline "
    "with `bench-coord submit …`, name another one, or write first_run=\"pass\" into the marker: then the floor and the "
    "policy alone are held until there is a baseline."
]


def hold_first(item: pytest.Function, run: Any, of_gate: Dict[str, Any]) -> None:
    """Holds a first run to what needs no baseline."""
    said = f"there is no baseline yet: {run!r} is the first, and its floor and policy alone are held"
    warnings.warn(pytest.PytestWarning(f"{item.nodeid}: {said}"))
    of_baseline = ("baseline", "under_test", "allow_inconclusive")
    hold(item, run, {key: value for key, value in of_gate.items() if key not in of_baseline}, "fail")


def why(run: Any) -> List[str]:
    """Why a run is INVALID, with what most of its failed questions were told."""
    return [*(run.reasons or [str(run.verdict)]), *([] if run.error is None else [run.error])]


def note(item: pytest.Item, line: str) -> None:
    item.user_properties.append((SEEN, one_line(line)))


class Seen:
    """Says at the end what was measured."""

    def __init__(self) -> None:
        self.lines: List[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.lines += [str(value) for key, value in report.user_properties if key == SEEN]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.lines:
            terminalreporter.section("bench-coord")
            for line in self.lines:
                terminalreporter.write_line(line)
