"""Tests of what needs packages of others (notebooks, frames) and of groups of runs. `scripts/test-python.sh` runs them. The
package itself and the memory libraries are tested beside the programs (crates/e2e/tests/it)."""

import os

import pytest

# Where the programs lie.
TARGET = os.environ.get("BENCH_TEST_PROGRAMS") or os.path.join(os.path.dirname(__file__), "..", "..", "target", "debug")


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch):
    """A folder, a home and the program of this build."""
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("BENCH_COORD", os.path.abspath(os.path.join(TARGET, "bench-coord")))
    return tmp_path / "work"
