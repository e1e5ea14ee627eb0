"""Runs a gate as a test.

    @pytest.mark.bench_gate(dataset="locomo", preset="fair", system="mine.py:Mine", baseline="last:3")
    def test_memory_is_no_worse(bench_run):
        assert bench_run.summary.outcomes.coverage > 0.99

The marker takes the arguments of `bench_coord.run` and those of a gate: `baseline`, `floor`, `policy`, `metric`,
`under_test`, `allow_inconclusive`. The run is made before the test, which then fails when the gate does not pass, with
the questions that flipped; its body, if any, looks at the run besides. A run that cannot be made is an error and no
failure. With `repeats=3` it is the `Group` of these, whose mean the gate holds. A matrix has no gate. Methods of
`unittest.TestCase` are held by the marker too; they have no `bench_run` to look at.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from . import _errors
from ._display import one_line

MARKER = "bench_gate"
# Arguments that are the gate's.
OF_GATE = ("baseline", "policy", "floor", "metric", "under_test", "allow_inconclusive")
# Arguments that make a matrix when they have several values.
OF_MATRIX = ("dataset", "preset", "system", "dataset_seed")
# What was measured, for the lines at the end, as a property of the test: its report brings it along, also from another
# process (pytest-xdist).
SEEN = "bench_coord_gate"
# The baseline as it was before the run of the test, which may have the same name.
BASELINE = pytest.StashKey[Any]()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(dataset, preset, system, baseline=None, floor=None, …): runs a benchmark, and fails where its gate does "
        "(arguments of bench_coord.run and of Run.gate)",
    )
    config.pluginmanager.register(Seen(), "bench_coord_seen")


def pytest_collection_modifyitems(items: List[pytest.Item]) -> None:
    for item in items:
        marked = isinstance(item, pytest.Function) and item.get_closest_marker(MARKER) is not None
        if marked and "bench_run" not in item.fixturenames:
            item.fixturenames.insert(0, "bench_run")


def arguments(item: Any) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """Arguments of the run, and of the gate. Markers of a class or module are what those of a test begin with."""
    given: Dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers(MARKER))):
        given.update(marker.kwargs)
        given.update(zip(("dataset", "preset", "system"), marker.args))
    if not given:
        raise pytest.UsageError(f"bench_run is for tests with @pytest.mark.{MARKER}(dataset=…, system=…)")
    of_gate = {key: given.pop(key) for key in OF_GATE if key in given}
    return given, of_gate


@pytest.fixture
def bench_run(request: pytest.FixtureRequest, record_property: Any) -> Iterator[Any]:
    """The run of the test's marker, a `bench_coord.Run`, or the `bench_coord.Group` of several. One that is INVALID is
    there too: its gate does not pass."""
    from . import _run

    given, of_gate = arguments(request.node)
    try:
        request.node.stash[BASELINE] = look_for(of_gate.get("baseline"), given)
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


def look_for(baseline: Any, given: Dict[str, Any]) -> Any:
    """The baseline. One that is not there is found before the run, which may cost money."""
    from . import _run

    if isinstance(baseline, str) and not baseline.startswith("last:") and not os.path.exists(baseline):
        where = {key: given[key] for key in ("cwd", "env", *_run.EVERYWHERE) if key in given}
        baseline = _run.load(baseline, **where)
    if baseline is not None:
        _run.side(baseline)
    return baseline


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
        _, of_gate = arguments(item)
        if "baseline" in of_gate:
            of_gate["baseline"] = item.stash.get(BASELINE, of_gate["baseline"])
        hold(item, item.funcargs["bench_run"], of_gate)


def hold(item: pytest.Function, run: Any, of_gate: Dict[str, Any]) -> None:
    """Fails the test when the gate does not pass."""
    if not holds(of_gate):
        if run.exit_code != 0:
            pytest.fail(one_line("; ".join(run.reasons or [str(run.verdict)])), pytrace=False)
        note(item, f"{item.nodeid}: {run!r}, no baseline, floor or policy")
        return
    try:
        gate, problem = run.gate(**of_gate), None
    except _errors.Error as refused:
        gate, problem = None, f"the gate cannot be held (exit {refused.exit_code}): {refused.message}"
    if gate is None:
        pytest.fail(problem, pytrace=False)
    note(item, f"{item.nodeid}: {gate['verdict']}, {run!r}")
    if not gate.passed:
        pytest.fail("\n".join([*gate.lines(), "", repr(run)]), pytrace=False)


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
