"""What the program refuses or cannot do, as exceptions. Each has the program's message and exit code."""

from __future__ import annotations

from typing import Any, Optional


class Error(Exception):
    """The program did not do what was asked.

    `exit_code` is the program's (docs/CLI.md has all), `message` what it said, `result` what there is all the same: the
    `Run` or `Group` of what is INVALID or below its floor, the `Comparison` of runs that cannot be compared; else None.
    `run` is the id of the run or the group, where one was made.
    """

    exit_code: int = 4
    run: Optional[str] = None

    def __init__(self, message: str, exit_code: Optional[int] = None, result: Optional[Any] = None) -> None:
        super().__init__(message)
        self.message, self.result = message, result
        if exit_code is not None:
            self.exit_code = exit_code


class Regression(Error):
    """The score is below the floor, or a gate found that something got worse."""

    exit_code = 1


class UsageError(Error):
    """Bad input: nothing was started."""

    exit_code = 2


class Stopped(Error):
    """Not finished and resumable: a budget is spent, a provider is away, somebody paused it. `bench_coord.resume` goes
    on."""

    exit_code = 3


class Unavailable(Error):
    """A service or a file that is needed is not there or broken, the program itself included: not finished."""

    exit_code = 4


class Invalid(Error):
    """Finished, but INVALID: its figures must not be used. Or runs that cannot be compared."""

    exit_code = 5


class Inconclusive(Error):
    """A gate cannot decide with these questions."""

    exit_code = 6


class Interrupted(KeyboardInterrupt):
    """A person stopped a run (Ctrl-C, or the notebook's stop button). What was done is stored; `run` is its id, for
    `bench_coord.resume`, or None where none was made."""

    exit_code = 3

    def __init__(self, message: str, run: Optional[str] = None) -> None:
        super().__init__(message)
        self.run = run


for _shown in (Error, Regression, UsageError, Stopped, Unavailable, Invalid, Inconclusive, Interrupted):
    # tracebacks name them as they are imported
    _shown.__module__ = "bench_coord"

BY_EXIT_CODE = {kind.exit_code: kind for kind in (Regression, UsageError, Stopped, Unavailable, Invalid, Inconclusive)}


def error(exit_code: int, message: str, result: Optional[Any] = None) -> Error:
    """The exception of an exit code."""
    return BY_EXIT_CODE.get(exit_code, Error)(message, exit_code, result)
