"""Tests of what needs packages that CI does not install: notebooks, frames, memory libraries. `scripts/test-python.sh`
runs them."""

import json
import os
import subprocess

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


@pytest.fixture
def simulator():
    """A simulated provider of models and embeddings; the base URL of its API."""
    child = subprocess.Popen(
        [os.path.join(TARGET, "bench-sim"), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE
    )
    try:
        yield json.loads(child.stdout.readline())["listening"]
    finally:
        child.kill()
        child.wait()
