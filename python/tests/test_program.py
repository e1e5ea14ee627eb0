"""What a verb says when it fails, in the words of an exception."""

from bench_coord._program import Ended


def message(*said: str) -> str:
    return Ended(1, "", said, None).message()


def test_the_reason_is_the_message_and_no_command_that_is_offered() -> None:
    floor = "floor:overall: 44.71 % is below 99.00 %"
    offer = ("an OpenAI key is set; with a real answerer and judge:", "  bench-coord submit --dataset locomo-sim")
    assert message("report: /runs/1", floor, *offer) == floor
    assert message(floor) == floor
    assert message("note", "error: no run 'x'", "  bench-coord list shows all") == "no run 'x'\n  bench-coord list shows all"
    assert message() == "bench-coord ended with 1 and said nothing"
