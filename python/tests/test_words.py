"""Words of datasets, answers and systems in what is written for people: they drive no terminal."""

import io
import types

import pytest

from bench_coord import Gate, Group, Run, _display, _program, _run, pytest_plugin

# Clears the screen, writes its title, turns the direction of writing, begins a line of its own, and is invisible.
WORDS = "a\x1b[2Jb\x1b]0;title\x07\u202ec\r\x85\u2028d\u200b\x9b1A\U000e0041e\n::error::f"
SEEN = "a [2Jb ]0;title  c   d  1A e ::error::f"


def harmless(text: str) -> bool:
    return _display.ACTS.search(text.replace("\n", "")) is None


def test_what_acts_becomes_a_blank_and_what_is_read_stays() -> None:
    assert _display.one_line(WORDS) == SEEN
    for good in ("Zürich – 東京", "نعم", "क\u094d\u200dष", "👩\u200d💻", ""):
        assert _display.one_line(good) == good
    assert _display.one_line(None) == "None"


def test_a_workflow_of_github_is_given_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    given = "a ##[set-output name=x]y"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert _display.one_line(given) == "a ## [set-output name=x]y"
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert _display.one_line(given) == given


def test_a_flip_and_a_gate_are_told_a_line_each() -> None:
    flip = {"direction": "lost", "question_id": WORDS, "question": WORDS, "gold": WORDS, "a": {"answer": WORDS}, "b": {}}
    line = _run.flip_line(flip)
    assert harmless(line) and "\n" not in line, line
    check = {"rule": WORDS, "level": "critical", "outcome": "regression", "detail": WORDS}
    comparison = {"flips": [flip], "flip_counts": {"lost": 1, "won": 0}}
    seen = {"verdict": "FAIL", "run": WORDS, "baseline": WORDS, "reasons": [WORDS], "checks": [check]}
    lines = Gate({**seen, "comparison": comparison}, 1).lines()
    assert len(lines) == 5 and all(harmless(line) and "\n" not in line for line in lines), lines


def test_a_run_and_a_group_name_themselves_in_one_line() -> None:
    run = {"run": {"id": WORDS, "verdict": "VALID"}, "headline": {"metric": WORDS, "value": 0.5}}
    group = {"group": {"id": WORDS}, "runs": [{"id": WORDS}], "mean": {"value": 0.5}}
    for shown in (repr(Run(None, run)), repr(Group(None, group))):
        assert harmless(shown) and "\n" not in shown, shown
    assert harmless(_run.table([(WORDS, WORDS)]))


@pytest.mark.parametrize("alone", [True, False])
def test_progress_stays_on_its_line(alone: bool) -> None:
    text = _display.Text()
    text.out, text.alone = io.StringIO(), alone
    away = [{"key": WORDS, "reason": WORDS}]
    text.show({"questions": 2, "ended": 1, "outages": away, "waits": {"reason": WORDS}})
    text.note(WORDS)
    written = text.out.getvalue().replace("\r", "")
    assert harmless(written) and written.count("\n") == (1 if alone else 2), written


def test_what_the_program_says_is_kept_without_what_acts() -> None:
    told = []
    heard = _program.Heard(lambda snapshot: None, told.append)
    heard.line("error: a\x1b[2Jb\u202ec")
    assert told == list(heard.said) == ["error: a [2Jb c"]


def test_what_a_test_run_says_at_its_end_drives_no_terminal() -> None:
    item = types.SimpleNamespace(user_properties=[])
    pytest_plugin.note(item, WORDS)
    assert item.user_properties == [(pytest_plugin.SEEN, SEEN)]


def test_an_invalid_run_names_what_most_of_its_questions_were_told() -> None:
    said = "recall: mine says: KeyError: 'the index\x1b[2J was never opened'"
    summary = dict(
        run=dict(id="bad", verdict="INVALID", reasons=["coverage 0.0 % is under 99 %"]),
        outcomes=dict(sample=12),
        errors=dict(timeout=2, system_refused=10),
        error_examples=dict(system_refused=said),
    )
    run = _run.Run(None, summary, 5)
    told = "10 of 12 questions ended in system_refused: recall: mine says: KeyError: 'the index [2J was never opened'"
    assert run.error == told
    why = run.why(types.SimpleNamespace(code=5, message=lambda: "nothing"))
    assert why == f"run bad is INVALID: coverage 0.0 % is under 99 %; {told}"
    del summary["error_examples"]
    assert _run.Run(None, summary).error == "10 of 12 questions ended in system_refused", "of an earlier build"
    del summary["errors"]
    assert _run.Run(None, summary).error is None
