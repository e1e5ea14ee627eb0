"""The gate of a marked test, whoever carries out its body: over runs that are made up."""

import subprocess
import sys
import textwrap

RUNS = """
from bench_coord import _run

class Gate(dict):
    passed = property(lambda self: self["verdict"] == "PASS")
    lines = lambda self: [f"{self['verdict']}: 38 % is below its floor"]

class Made:
    exit_code, reasons, verdict, score = 0, [], "VALID", 0.38

    def __init__(self, id):
        self.id = id

    def gate(self, baseline=None, floor=0.0):
        held = _run.identifier(baseline) if baseline is not None else None
        return Gate(verdict="PASS" if self.score >= floor and held in (None, "before") else "FAIL")

    __repr__ = lambda self: f"<run {self.id}>"

class Measured(Made, _run.Measured):
    id = "before"
    def __init__(self): pass

_run.run = lambda **given: Made("now")
_run.load = lambda name, **where: Measured()
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
