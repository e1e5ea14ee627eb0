"""Questions as frames of the packages that people have."""

import pandas
import polars
import pyarrow
import pytest

import bench_coord
from bench_coord._run import frame


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


def test_texts_stay_as_they_are_without_a_package_that_reads_parquet(monkeypatch, tmp_path):
    def missing(*_, **__):
        raise ImportError("no engine")

    monkeypatch.setattr(pandas, "read_parquet", missing)
    columns = "question_id,answer,gold,retrieved,attempts,usd,facet:kind,score:f1"
    (tmp_path / "questions.csv").write_text(f"{columns}\n007,None,N/A,,1,,NA,0.5\n008,,7,m1,2,0.25,,\n")
    read = frame("pandas", lambda format: tmp_path / f"questions.{format}")
    assert list(read["question_id"]) == ["007", "008"] and list(read["retrieved"]) == ["", "m1"]
    assert (read["answer"][0], read["gold"][0], read["gold"][1], read["facet:kind"][0]) == ("None", "N/A", "7", "NA")
    assert read.isna().sum().to_dict() == {
        **dict.fromkeys(("question_id", "gold", "retrieved", "attempts"), 0),
        **dict.fromkeys(("answer", "usd", "facet:kind", "score:f1"), 1),
    }
    assert (read["attempts"].sum(), read["usd"].sum(), read["score:f1"].sum()) == (3, 0.25, 0.5)
