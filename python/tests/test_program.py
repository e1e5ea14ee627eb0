"""What a verb says when it fails, in the words of an exception."""

import re
import subprocess

import pytest

from bench_coord._errors import UsageError
from bench_coord._program import CAN_BE_OFF, SWITCHES, Ended, find, flags


def message(*said: str) -> str:
    return Ended(1, "", said, None).message()


def test_the_reason_is_the_message_and_no_command_that_is_offered() -> None:
    floor = "floor:overall: 44.71 % is below 99.00 %"
    offer = ("an OpenAI key is set; with a real answerer and judge:", "  bench-coord submit --dataset locomo-sim")
    assert message("report: /runs/1", floor, *offer) == floor
    assert message(floor) == floor
    assert message("note", "error: no run 'x'", "  bench-coord list shows all") == "no run 'x'\n  bench-coord list shows all"
    assert message() == "bench-coord ended with 1 and said nothing"


def test_arguments_are_flags_that_say_what_was_meant() -> None:
    assert flags(dict(top_k=20, controls=True, from_="answer", name=None)) == ["--top-k", "20", "--controls", "--from", "answer"]
    assert flags(dict(category=["a", "-b"])) == ["--category", "a", "--category=-b"]
    assert flags(dict(latency_probe=False, cache=False, controls=False)) == ["--latency-probe", "off", "--cache", "off"]
    assert flags(dict(set={"vector.model": None, "mine.most": 2})) == ["--set", "mine.most=2"]
    assert flags(dict(tag={"b", "a"}, dataset_seed={10, 9})) == flags(dict(tag=["a", "b"], dataset_seed=[9, 10]))
    assert flags(dict(set={"mine.tags": {"temporal"}})) == ["--set", 'mine.tags=["temporal"]']


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (dict(question_id=[]), "question_id is empty"),
        (dict(question_id=(one for one in ())), "question_id is empty"),
        (dict(category=["a", None]), "category holds None"),
        (dict(max_cost=False), "max_cost=False says nothing: --max-cost takes a value"),
    ],
)
def test_arguments_that_would_say_something_else_are_refused(given: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        flags(given)


def test_the_flags_that_take_no_value_are_those_of_the_program() -> None:
    switches, others = set(), set()
    for verb in ("submit", "estimate", "resume", "gate", "compare"):
        told = subprocess.run([find(), verb, "--help"], stdout=subprocess.PIPE, text=True, timeout=60).stdout
        for flag, value in re.findall(r"^ {2,6}(?:-\w, )?--([a-z-]+)(?:\.\.\.)?( <.*>)?", told, re.MULTILINE):
            (others if value else switches).add(flag.replace("-", "_"))
    assert switches - {"help"} == set(SWITCHES)
    assert set(CAN_BE_OFF) <= others
