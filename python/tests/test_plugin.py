"""The gate of a marked test, whoever carries out its body: over runs that are made up."""

import subprocess
import sys
import textwrap

RUNS = """
import bench_coord
from bench_coord import _run

# what has no run before it
NOTHING = ("last:1", "last:3")

class Gate(dict):
    passed = property(lambda self: self["verdict"] == "PASS")
    lines = lambda self: [f"{self['verdict']}: 38 % is below its floor"]

class Made:
    exit_code, reasons, verdict, score, error = 0, [], "VALID", 0.38, None

    def __init__(self, id):
        self.id = id

    def gate(self, baseline=None, floor=0.0):
        if baseline in NOTHING:
            raise bench_coord.Invalid("no finished, VALID run before now has its dataset, sample and memory system")
        held = _run.identifier(baseline) if baseline is not None else None
        return Gate(verdict="PASS" if self.score >= floor and held in (None, "before") and baseline != "last:1" else "FAIL")

    __repr__ = lambda self: f"<run {self.id}>"

class Measured(Made, _run.Measured):
    id = "before"
    def __init__(self): pass

_run.run = lambda **given: Made("now")
def load(name, **where):
    if name == "nothing":
        raise bench_coord.UsageError("no run 'nothing' in a store; `bench-coord list` shows all")
    return Measured()

_run.load = load
"""
TESTS = """
import unittest, pytest

low = pytest.mark.bench_gate(floor=0.99)

class Cases(unittest.TestCase):
    @low
    def test_case(self):
        self.fail("its gate comes first")

    @pytest.mark.bench_gate(floor=0.1)
    def test_case_that_passes(self):
        pass

@low
async def test_async():
    raise AssertionError("its gate comes first")

@pytest.mark.bench_gate(name="nightly", baseline="nightly")
def test_named_as_its_baseline(bench_run):
    assert bench_run.id == "now"
"""


def test_every_kind_of_test_is_held_to_its_gate_and_a_baseline_is_what_it_was_before(apart):
    (apart / "conftest.py").write_text(RUNS)
    (apart / "test_memory.py").write_text(textwrap.dedent(TESTS))
    command = [sys.executable, "-m", "pytest", "-p", "bench_coord.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers"]
    done = subprocess.run([*command, "--junit-xml", "tests.xml"], stdout=subprocess.PIPE, text=True, timeout=120)
    said = done.stdout
    assert done.returncode == 1 and "2 failed, 2 passed" in said, said
    assert said.count("FAIL: 38 % is below its floor") >= 2 and "its gate comes first" not in said, said
    # the lines at the end come with the reports of the tests
    assert "test_memory.py::Cases::test_case_that_passes: PASS, <run now>" in said, said
    assert "test_memory.py::test_named_as_its_baseline: PASS, <run now>" in said, said
    assert 'name="bench_coord_gate"' in (apart / "tests.xml").read_text()


FIRSTS = """
import pytest

@pytest.mark.bench_gate(baseline="last:3", floor=0.2)
def test_first():
    raise AssertionError("its gate comes first")

@pytest.mark.bench_gate(baseline="last:3", floor=0.2, first_run="pass")
def test_first_that_may_be(bench_run):
    assert bench_run.id == "now"

@pytest.mark.bench_gate(baseline="last:3", floor=0.99, first_run="pass")
def test_first_below_its_floor():
    raise AssertionError("its gate comes first")

@pytest.mark.bench_gate(baseline="nothing", first_run="pass")
def test_first_of_a_name(bench_run):
    assert bench_run.id == "now"

@pytest.mark.bench_gate(baseline="nothing")
def test_without_baseline():
    raise AssertionError("there is no run")
"""


def test_of_a_first_run_the_floor_is_held_where_that_is_said_and_else_it_is_told_what_to_do(apart):
    (apart / "conftest.py").write_text(RUNS)
    (apart / "test_memory.py").write_text(textwrap.dedent(FIRSTS))
    command = [sys.executable, "-m", "pytest", "-p", "bench_coord.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers"]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120).stdout
    assert "2 failed, 2 passed" in said and "1 error" in said, said
    assert 'write first_run="pass" into the marker' in said and "bench-coord submit" in said, said
    assert said.count("there is no baseline yet") >= 3 and "its gate comes first" not in said, said
    assert "FAIL: 38 % is below its floor" in said and "no run 'nothing' in a store" in said, said


MISTYPED = """
import pytest

@pytest.mark.bench_gate(baseline="nothing", floor=0.2, first_run="pass")
def test_mistyped():
    raise AssertionError("its gate comes first")
"""


def test_a_baseline_whose_name_is_no_run_s_passes_nothing_that_the_newest_run_does_not(apart):
    (apart / "conftest.py").write_text(RUNS + '\nNOTHING = ("last:3",)\n')
    (apart / "test_memory.py").write_text(textwrap.dedent(MISTYPED))
    command = [sys.executable, "-m", "pytest", "-p", "bench_coord.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers"]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=120).stdout
    assert "1 failed" in said and "FAIL: 38 % is below its floor" in said and "its gate comes first" not in said, said
    assert "no run has the name of the baseline" in said and "there is no baseline yet" not in said, said
