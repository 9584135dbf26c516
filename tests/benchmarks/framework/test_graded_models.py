"""Graded files of several models in the official shapes, and the names of the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.framework.base import get_benchmark
from benchmarks.framework.leaderboard import read_models
from judging.errors import CustosError
from tests.benchmarks.charthal.test_benchmark import item
from tests.benchmarks.simplevqa.made_up import item as question
from tests.benchmarks.truthfulvqa.test_benchmark import ROWS

CHARTHAL, SIMPLEVQA, TRUTHFULVQA = map(get_benchmark, ("charthal", "simplevqa", "truthfulvqa"))


def write(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False))
    return str(path)


def eval_file(*scores: int) -> dict[str, Any]:
    """Return what ``evaluate.py`` of ChartHal's repository writes."""
    rows = [item(response="12", eval_resp=f"Score: {score}", score=score) for score in scores]
    return {f"{n}_0": {k: v for k, v in row.items() if k != "id"} for n, row in enumerate(rows)}


def test_a_clone_of_charthals_repository(tmp_path: Path) -> None:
    write(tmp_path / "results" / "gpt-5-mini" / "eval.json", eval_file(1, 0))
    write(tmp_path / "results" / "qwen" / "eval.json", eval_file(1, 1))
    models = read_models(CHARTHAL, [str(tmp_path)], {})
    assert list(models) == ["gpt-5-mini", "qwen"]
    assert CHARTHAL.table(models["qwen"].rows)["overall"]["score"] == 100
    assert models["qwen"].source == str(tmp_path / "results" / "qwen" / "eval.json")
    renamed = read_models(CHARTHAL, [f"mine={tmp_path / 'results' / 'qwen'}"], {})
    assert list(renamed) == ["mine"]
    with pytest.raises(CustosError, match="a folder of several models; give it without a name"):
        read_models(CHARTHAL, [f"mine={tmp_path}"], {})


def test_a_simplevqa_file_with_several_models(tmp_path: Path) -> None:
    said = {"g4o_response": "正确", "qwen72B_response": {"conclusion": "**错误**"}}
    path = write(tmp_path / "SimpleVQA_judge.json", [question(n, judge_res=said) for n in range(3)])
    models = read_models(SIMPLEVQA, [path], {})
    assert list(models) == ["g4o", "qwen72B"]
    shares = [SIMPLEVQA.table(model.rows)["overall"]["CO"] for model in models.values()]
    assert shares == [1, 0]
    with pytest.raises(CustosError, match="holds the models g4o_response, qwen72B_response; give"):
        read_models(SIMPLEVQA, [f"x={path}"], {})


def test_the_results_of_truthfulvqas_code(tmp_path: Path) -> None:
    write(tmp_path / "results" / "extracted" / "qwen.json", ROWS)
    write(tmp_path / "results" / "metrics" / "qwen.json", {"overall_accuracy": 0.5})
    assert list(read_models(TRUTHFULVQA, [str(tmp_path / "results")], {})) == ["qwen"]
    flat = tmp_path / "flat"
    write(flat / "llava.json", ROWS)
    write(flat / "metrics.json", {"overall_accuracy": 0.5})
    models = read_models(TRUTHFULVQA, [str(flat)], {})
    assert list(models) == ["llava"]
    assert TRUTHFULVQA.table(models["llava"].rows)["overall_accuracy"] == 0.5
    with pytest.raises(CustosError, match="no extracted/MODEL.json in this folder"):
        read_models(TRUTHFULVQA, [str(tmp_path)], {})


def test_names_and_what_cannot_be_named(tmp_path: Path) -> None:
    path = write(tmp_path / "gpt.eval.json", eval_file(1, 0))
    assert list(read_models(CHARTHAL, [path], {})) == ["gpt"]
    assert list(read_models(CHARTHAL, [f"a={path}", f"b={path}"], {})) == ["a", "b"]
    odd = write(tmp_path / "a=b.json", eval_file(1, 0))
    assert list(read_models(CHARTHAL, [odd], {})) == ["a=b"]
    with pytest.raises(CustosError, match="there are two models 'gpt'; name them with MODEL=FILE"):
        read_models(CHARTHAL, [path, path], {})
    with pytest.raises(CustosError, match="--people other: not one of the models gpt"):
        read_models(CHARTHAL, [path], {"other": path})
    with pytest.raises(CustosError, match="hieval has no folders of results"):
        read_models(get_benchmark("hieval"), [str(tmp_path)], {})


def test_time_and_people_belong_to_their_model(tmp_path: Path) -> None:
    path = write(tmp_path / "gpt.json", eval_file(1, 0, 1))
    write(tmp_path / "gpt.json.run.json", {"judge": "j", "requests": 3, "seconds": 2})
    people = write(tmp_path / "people.json", {"0_0": {"score": 1}})
    model = read_models(CHARTHAL, [path], {"gpt": people})["gpt"]
    assert model.run == {"judge": "j", "requests": 3, "seconds": 2}
    assert [row["score"] for row in model.people] == [1]
    unknown = write(tmp_path / "unknown.json", {"zzz": {"score": 1}})
    with pytest.raises(CustosError, match="unknown.json: .*no item 'zzz'"):
        read_models(CHARTHAL, [path], {"gpt": unknown})
