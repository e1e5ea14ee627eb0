"""Several runs of one command: repeats, and matrices of systems or seeds."""

import os
import subprocess
import sys
import textwrap

import pytest

import bench_coord
from bench_coord import _program, _run

SIZE = dict(dataset="locomo-sim", sample=2, max_banks=3, latency_probe="off", display="none")
SLOW = """
import re, time

def words(text):
    return set(re.findall("[a-z0-9]+", text.lower()))

class Slow:
    def __init__(self):
        self.banks = {}

    def retain(self, bank, items):
        self.banks.setdefault(bank, []).extend(items)

    def recall(self, bank, query, k):
        time.sleep(0.02)
        overlap = lambda item: len(words(query) & words(item["text"]))
        return sorted(self.banks[bank], key=overlap, reverse=True)[:k]
"""


def test_repeats_are_loaded_resumed_compared_and_gated_by_their_mean():
    group = bench_coord.run(system="bm25", repeats=2, name="twice", **SIZE)
    assert isinstance(group, bench_coord.Group) and not group.is_matrix
    assert (group.name, group.verdict, group.reasons) == ("twice", "VALID", [])
    assert group.ids == [f"{group.id}-r1", f"{group.id}-r2"] == [run.id for run in group.runs]
    for again in (bench_coord.load(group.id), bench_coord.load("twice"), bench_coord.load("latest")):
        assert isinstance(again, bench_coord.Group) and again.summary == group.summary
    for again in (bench_coord.resume(group, display="none"), bench_coord.resume(group.id, display="none")):
        assert isinstance(again, bench_coord.Group) and again.score == group.score

    one = bench_coord.run(system="full-context", check=False, **SIZE)
    assert isinstance(one, bench_coord.Run)
    assert _run.identifier(group) == group.id and _run.identifier(one) == one.id
    there, back = one.compare(group, check=False), group.compare(one, check=False)
    assert (there.a.id, there.b.id) == (group.id, one.id) == (back.b.id, back.a.id)
    assert there.paired.difference == pytest.approx(-back.paired.difference)
    assert group.gate(floor=0.2).passed
    low = group.gate(floor=0.99)
    assert not low.passed and low.run == group.id and "is below 99.00 %" in str(low)
    held = group.gate(group.runs[0], allow_inconclusive=True)
    assert held.baseline == group.ids[0] and held.comparison.paired.difference == 0
    assert one.gate(group, under_test="system").baseline == group.id

    assert os.path.getsize(group.page) > 1000 and "repeats" in group.pictures
    assert str(group) == group.report()
    for single in (group.questions, lambda: group.show("a question")):
        with pytest.raises(bench_coord.UsageError, match=f"questions are of single runs: .* such as {group.id}-r1"):
            single()


def test_a_floor_is_one_for_the_mean_and_the_error_has_the_group():
    with pytest.raises(bench_coord.Regression, match="the mean .* is below 99.00 %") as below:
        bench_coord.run(system="bm25", repeats=2, floor=0.99, **SIZE)
    group = below.value.result
    assert isinstance(group, bench_coord.Group) and below.value.run == group.id


def test_a_matrix_is_a_group_whose_runs_are_held_one_by_one():
    with pytest.raises(bench_coord.Invalid) as invalid:
        bench_coord.run(system="bm25,random", run_id="grid", **SIZE)
    assert invalid.value.message.startswith("group grid is INVALID: grid-c2-r1: "), "the cells are in it by their runs"
    matrix = invalid.value.result
    assert isinstance(matrix, bench_coord.Group) and matrix.is_matrix and invalid.value.run == "grid"
    assert (matrix.id, matrix.verdict, matrix.exit_code, matrix.score) == ("grid", "INVALID", 5, None)
    assert matrix.ids == ["grid-c1-r1", "grid-c2-r1"]
    assert repr(matrix) == "<bench_coord.Group grid: 2 runs, 2 cells>"
    assert bench_coord.load("grid").summary == matrix.summary
    assert bench_coord.resume(matrix, display="none", check=False).summary == matrix.summary
    first, second = matrix.runs
    assert second.compare(first, check=False, under_test="system").b.id == "grid-c2-r1"
    for refused in (
        lambda: matrix.compare(first),
        lambda: first.compare(matrix),
        lambda: matrix.gate(floor=0.1),
        lambda: first.gate(matrix),
        matrix.questions,
    ):
        with pytest.raises(bench_coord.UsageError, match="grid is a matrix, and .* such as grid-c1-r1"):
            refused()
    # by its name the program says it
    with pytest.raises(bench_coord.UsageError, match="grid is a matrix: .* such as grid-c1-r1"):
        first.gate("grid")


def test_seeds_are_a_matrix():
    seeds = bench_coord.run(system="bm25", dataset_seed=[1, 2], **SIZE)
    assert seeds.is_matrix and seeds.verdict == "VALID"
    assert seeds.summary.seeds[0].mean == pytest.approx(sum(run.score for run in seeds.runs) / 2)


def test_a_group_that_was_stopped_goes_on(apart):
    (apart / "slow.py").write_text(SLOW)

    def stop(snapshot):
        if snapshot["ended"] >= 2:
            raise KeyboardInterrupt

    with pytest.raises(bench_coord.Interrupted) as stopped:
        bench_coord.run(system="slow.py:Slow", repeats=2, run_id="held", **{**SIZE, "display": stop})
    assert stopped.value.run == "held"
    left = bench_coord.load("held")
    assert left.verdict is None
    group = bench_coord.resume(left, display="none")
    assert isinstance(group, bench_coord.Group) and group.summary.group.ended == 2 and group.verdict == "VALID"


@pytest.mark.parametrize("line", ["run r: locomo-sim", "group r: 3 of 20 questions to go", "matrix r: 2 cells, 2 runs to make"])
def test_what_begins_is_known_by_its_first_line(line):
    heard = _program.Heard(lambda snapshot: None, lambda line: None)
    heard.line(line)
    assert heard.run == "r"


def test_what_was_printed_is_told_apart(apart):
    program = _program.Program()
    made = {
        name: type(_run.made(program, summary)).__name__
        for name, summary in {
            # a run names the group of its controls too
            "run": {"run": {"id": "r"}, "group": {"id": "g"}},
            "repeats": {"group": {"id": "g"}, "runs": []},
            "matrix": {"id": "m", "cells": []},
            "other": {"version": "1"},
            "nothing": None,
        }.items()
    }
    assert made == {"run": "Run", "repeats": "Group", "matrix": "Group", "other": "NoneType", "nothing": "NoneType"}
    open_cell = {"verdict": "VALID", "ended": 1, "runs": ["m-c1-r1", "m-c1-r2"]}
    assert _run.Group(program, {"id": "m", "cells": [open_cell]}).verdict is None


def test_the_gate_of_a_test_holds_the_mean_of_repeats(apart):
    (apart / "test_memory.py").write_text(
        textwrap.dedent(
            """
            import bench_coord, pytest

            size = dict(dataset="locomo-sim", sample=2, max_banks=3, latency_probe="off")

            @pytest.mark.bench_gate(system="bm25", repeats=2, floor=0.2, name="before", **size)
            def test_floor(bench_run):
                assert isinstance(bench_run, bench_coord.Group) and len(bench_run.runs) == 2

            @pytest.mark.bench_gate(system="bm25", repeats=2, baseline="before", allow_inconclusive=True, **size)
            def test_baseline():
                pass

            @pytest.mark.bench_gate(system="bm25", repeats=2, floor=0.99, **size)
            def test_below():
                raise AssertionError("its gate comes first")

            @pytest.mark.bench_gate(system="bm25", dataset_seed="1,2", name="seeds", **size)
            def test_seeds(bench_run):
                assert bench_run.is_matrix

            @pytest.mark.bench_gate(system="bm25,random", **size)
            def test_invalid():
                raise AssertionError("it is INVALID")

            @pytest.mark.bench_gate(system="bm25,none", floor=0.1, name="never", **size)
            def test_matrix():
                pass

            @pytest.mark.bench_gate(system="bm25", baseline="seeds", name="never", **size)
            def test_baseline_is_a_matrix():
                pass
            """
        )
    )
    command = [sys.executable, "-m", "pytest", "-p", "bench_coord.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers"]
    done = subprocess.run([*command, "--junit-xml", "tests.xml"], stdout=subprocess.PIPE, text=True, timeout=300)
    said = done.stdout
    assert done.returncode == 1 and "2 failed, 3 passed" in said and "2 errors" in said, said
    for words in (
        "is below 99.00 %",
        "-c2-r1: all 10 questions got the same answer",
        "these arguments make a matrix: give one dataset",
        "is a matrix, and what is compared or gated is a run",
        "test_memory.py::test_baseline: INCONCLUSIVE, <bench_coord.Group ",
    ):
        assert words in said, (words, said)
    assert "its gate comes first" not in said and "it is INVALID" not in said, said
    assert '<property name="bench_coord_score" value="0.' in (apart / "tests.xml").read_text()
    with pytest.raises(bench_coord.UsageError, match="no run 'never'"):
        bench_coord.load("never")
