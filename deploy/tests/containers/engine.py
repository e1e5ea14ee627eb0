"""The container engine, as a person uses it: `docker` and `docker compose`."""

import json
import os
import subprocess
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
IMAGE = os.environ.get("BENCH_IMAGE", "bench-coord:local")
PROJECT = "bench-coord-test"
COMPOSE = ["compose", "--project-name", PROJECT, "--file", "deploy/compose.yaml"]
if os.environ.get("BENCH_TEST_STAND_INS"):
    COMPOSE += ["--file", "scripts/containers/compose.yaml"]
# longest time of one command
PATIENCE = 600


class Failed(AssertionError):
    """A command that ended otherwise than wanted, with what it said."""


def docker(*words, code=0, timeout=PATIENCE, **options):
    """Runs a command to its end and returns what it wrote to standard output."""
    done = subprocess.run(
        ["docker", *words], cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False, env=os.environ, **options
    )
    if code is not None and done.returncode != code:
        raise Failed(f"docker {' '.join(words)}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


def compose(*words, **options):
    return docker(*COMPOSE, *words, **options)


def bench(*words, **options):
    """A verb of bench-coord beside the cluster."""
    return compose("run", "--rm", "--no-deps", "--no-TTY", "submit", "bench-coord", *words, **options)


def inspect(name):
    return json.loads(docker("inspect", name))[0]


def containers(service, *flags):
    """Names of a service's containers, in their order."""
    lines = compose("ps", "--all", *flags, "--format", "json", service).splitlines()
    return sorted(json.loads(line)["Name"] for line in lines if line.strip())


def down():
    compose("--profile", "run", "--profile", "observability", "down", "--volumes", "--remove-orphans", "--timeout", "5")


def until(what, holds, patience=120, every=0.5):
    """Waits for a condition and returns what it found."""
    began = time.monotonic()
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() - began > patience:
            raise Failed(f"not within {patience} s: {what}")
        time.sleep(every)


class WithLogs(unittest.TestCase):
    """Shows what the containers said when a test fails."""

    maxDiff = None

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        super().run(result)
        if len(result.failures) + len(result.errors) > before:
            print(compose("logs", "--tail", "15", "--no-color", code=None))
