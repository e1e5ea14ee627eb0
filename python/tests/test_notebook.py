"""A class of a cell, progress that is updated, and a run that shows itself, in a real kernel."""

import textwrap
import types

import nbformat
import pytest
from nbclient import NotebookClient

from bench_coord import UsageError, _display, _source

SIZE = "dataset='locomo-sim', preset='quick', top_k=5, latency_probe='off'"


@pytest.mark.parametrize(
    ("told", "ended", "said"),
    [(False, 9, "mean so far 0.500"), (True, 8, "score 0.500"), (None, 9, "score 0.500"), (None, 8, "mean so far 0.500")],
)
def test_a_score_is_that_of_the_report_or_the_mean_so_far(told, ended, said):
    snapshot = {"questions": 9, "ended": ended, "score": 0.5, "score_is_of_report": told}
    assert said in _display.parts(snapshot)


def executed(*cells):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in cells])
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return notebook.cells


def printed(cell):
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")


def test_a_class_of_a_cell_is_measured_with_what_other_cells_define(apart):
    (apart / "words.py").write_text("def words_of(text):\n    return set(text.lower().split())\n")
    cells = executed(
        "import bench_coord, re\nfrom words import words_of",
        "PATTERN = re.compile(r'[^a-z0-9 ]')\nMOST = 20\n!echo a line of the shell",
        """
        def overlap(query, text):
            clean = lambda text: words_of(PATTERN.sub(' ', text.lower()))
            return len(clean(query) & clean(text))
        """,
        """
        class Mine(bench_coord.System):
            def __init__(self, most: int = 5):
                self.banks, self.most = {}, most

            def retain(self, bank, items):
                print('retained', len(items))
                self.banks.setdefault(bank, []).extend(items)

            def recall(self, bank, query, k):
                best = sorted(self.banks[bank], key=lambda item: overlap(query, item.text), reverse=True)
                return best[:min(k, self.most, MOST)]
        """,
        f"run = bench_coord.run(system=Mine, {SIZE})\nrun",
        "print(run.verdict, len(run.questions()), max(len(q.retrieved) for q in run.questions()))",
        f"MOST = 2  # fewer than the run asks for, which the runner sees\nagain = bench_coord.run(system=Mine, display='none', check=False, {SIZE})",
        "print(max(len(q.retrieved) for q in again.questions()), again.compare(run, check=False).differences[0]['key'])",
        "again.compare(run, check=False)",
    )
    shown, result = cells[4].outputs[0], cells[4].outputs[-1]
    assert shown.output_type == "display_data" and "<progress" in shown.data["text/html"], cells[4].outputs
    assert sum(one.output_type == "display_data" for one in cells[4].outputs) == 1, "one display that is updated"
    assert "locomo-f1" in result.data["text/html"] and "data:image/svg+xml" in result.data["text/html"]
    assert not any(one.output_type == "stream" for one in cells[4].outputs), "what the system prints goes to its log"
    verdict, questions, most = printed(cells[5]).split()
    assert (verdict, most) == ("VALID", "5") and int(questions) > 0
    assert printed(cells[7]) == "2 system.version\n", "a value of a cell is what it is when the run begins"
    assert "Verdict" in cells[8].outputs[-1].data["text/html"]


def test_an_interrupt_of_the_kernel_stops_the_run_so_that_it_goes_on():
    notebook = nbformat.v4.new_notebook()
    cells = [
        """
        import bench_coord, os, signal, threading, time
        class Slow(bench_coord.System):
            def __init__(self):
                self.banks = {}
            def retain(self, bank, items):
                self.banks.setdefault(bank, []).extend(items)
            def recall(self, bank, query, k):
                time.sleep(0.1)
                words = set(query.lower().split())
                overlap = lambda item: len(words & set(item.text.lower().split()))
                return sorted(self.banks[bank], key=overlap, reverse=True)[:k]
        def stop(snapshot):
            if snapshot['ended'] >= 2:
                os.kill(os.getpid(), signal.SIGINT)
        """,
        """
        try:
            bench_coord.run(system=Slow, dataset='locomo-sim', preset='quick', latency_probe='off', display=stop)
        except bench_coord.Interrupted as stopped:
            print(bench_coord.resume(stopped.run, display='none').verdict)
        """,
    ]
    notebook.cells = [nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in cells]
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    assert printed(notebook.cells[1]) == "VALID\n"


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("USED = os.environ['MEM_PIN']", "comes from variable MEM_PIN"),
        ("USED = {'headers': [f\"Bearer {os.environ['MEM_LONG_KEY']}\"]}", "comes from variable MEM_LONG_KEY"),
        ("from getpass import getpass\nUSED = getpass()", "comes from what was typed in for USED"),
        ("KEY = input('key: ')\nUSED = {'key': KEY}", "comes from what was typed in for KEY"),
        ("USED = 'open-sesame'", None),
        ("USED = os.environ['MEM_FOLDER']", None),
        ("USED = os.environ['MEM_SHORT']", None),
        ("USED = os.environ['USER']", None),
    ],
)
def test_what_came_from_outside_of_a_notebook_is_not_written_into_its_code(cell, words, monkeypatch, tmp_path):
    outside = dict(MEM_PIN="open-sesame", MEM_LONG_KEY="open-sesame-of-mine", MEM_FOLDER=str(tmp_path), MEM_SHORT="on", USER="benchmark")
    for variable, value in outside.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr("getpass.getpass", lambda *_: "typed-in-1234")
    namespace = types.ModuleType("cells").__dict__
    namespace["input"] = lambda *_: "typed-in-1234"
    monkeypatch.setattr(_source, "cells", lambda: ["import os", cell])
    exec(f"import os\n{cell}", namespace)
    written = _source.Written(namespace)
    if words is None:
        written.define("USED", namespace["USED"])
        assert written.text() == f"USED = {namespace['USED']!r}\n"
        return
    with pytest.raises(UsageError, match=words) as refused:
        written.define("USED", namespace["USED"])
    said = str(refused.value)
    assert "read it in __init__ with os.environ[" in said and "env = [" in said
    assert not any(value in said for value in [*outside.values(), "typed-in-1234"] if len(value) > 8), said
