"""Questions as frames of the packages that people have."""

import pandas
import polars
import pyarrow
import pytest

import bench_coord


@pytest.fixture
def run():
    return bench_coord.run(dataset="locomo-sim", sample=2, max_banks=3, latency_probe="off", display="none")


def test_questions_are_frames_with_a_row_each(run, monkeypatch):
    listed = run.questions()
    frames = {kind: run.questions(as_=kind) for kind in ("pandas", "polars", "arrow")}
    assert isinstance(frames["pandas"], pandas.DataFrame)
    assert isinstance(frames["polars"], polars.DataFrame)
    assert isinstance(frames["arrow"], pyarrow.Table)
    scores = [question.scores["locomo-f1"] for question in listed]
    assert list(frames["pandas"]["score:locomo-f1"]) == scores
    assert frames["polars"]["score:locomo-f1"].to_list() == scores
    assert frames["arrow"]["question_id"].to_pylist() == [question.question_id for question in listed]

    def missing(*_, **__):
        raise ImportError("no engine")

    monkeypatch.setattr(pandas, "read_parquet", missing)
    without = run.questions(as_="pandas")
    assert list(without.columns) == list(frames["pandas"].columns)
    assert list(without["score:locomo-f1"]) == pytest.approx(scores)
    with pytest.raises(ValueError, match="as_ must be"):
        run.questions(as_="csv")
