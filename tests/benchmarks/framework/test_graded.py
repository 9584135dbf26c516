"""Graded files: two compared item by item, many read and beside each other and the paper."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from benchmarks.framework.correction import corrected_score
from benchmarks.framework.graded import GradedModel, ScoredItems, compare_graded
from benchmarks.framework.leaderboard import build_leaderboard, read_models
from judging.errors import CustosError, FieldError
from tests.benchmarks.framework.test_correction import graded as graded_with_people
from tests.benchmarks.test_charthal import CHARTHAL, item
from tests.benchmarks.test_hieval import HIEVAL
from tests.benchmarks.test_simplevqa import SIMPLEVQA
from tests.benchmarks.test_simplevqa import item as question
from tests.benchmarks.test_truthfulvqa import ROWS, TRUTHFULVQA
from tests.cli.bench.made_up import write


def truthful(answers: str, start: int = 0, **fields: Any) -> list[dict[str, Any]]:
    return [
        {"question_id": n, "ground_truth": "A", "response": f"({answer})", **fields}
        for n, answer in enumerate(answers, start)
    ]


def compared(first: list[dict[str, Any]], second: list[dict[str, Any]]) -> dict[str, Any]:
    return compare_graded(*(ScoredItems.of(TRUTHFULVQA, rows) for rows in (first, second)))


def test_two_files_differ_level_by_level_and_by_more_than_chance() -> None:
    before, after, better = (
        [{**row, "level": 1 + n % 3} for n, row in enumerate(truthful(answers * 4))]
        for answers in ("ABB", "BAB", "AAB")
    )
    found = compared(before, after)
    by_level = {part: row["value"] for part, row in found["by"]["level"].items()}
    assert by_level == {"1": -1.0, "2": 1.0, "3": 0.0}
    assert (found["a_higher"], found["b_higher"], found["p"]) == (4, 4, 1.0)
    found = compared(before, better)
    assert (found["a_higher"], found["b_higher"]) == (0, 4)
    assert found["p"] == pytest.approx(2 * 0.5**4)


@pytest.mark.parametrize("movers", [2, 3, 4])
def test_a_difference_on_few_items_leaves_out_zero_only_where_the_test_does(movers: int) -> None:
    found = compared(truthful("B" * movers + "A" * (300 - movers)), truthful("A" * 300))
    assert found["p"] == pytest.approx(binomtest(movers, movers).pvalue)
    assert found["p"] > 0.05
    assert found["difference"]["value"] == pytest.approx(movers / 300)
    assert found["difference"]["low"] <= 0 < found["difference"]["high"] <= 1


def test_answers_that_nobody_graded_are_scored_by_the_data_sets_own_key() -> None:
    rows = [{"question_id": 1, "answer": "A", "response": "(A)"}]
    assert [score.value for score in TRUTHFULVQA.scores(rows)] == [1.0]
    with pytest.raises(FieldError) as error:
        TRUTHFULVQA.scores([{"question_id": 1, "response": "(A)"}])
    assert (error.value.field, error.value.location) == ("answer", "item '1'")


def test_charthal_is_compared_cell_by_cell() -> None:
    cells = ("desc_normal", "open_normal", "open_irrel")
    files = (
        [item(cells[n % 3], id=str(n), figure_id=n, score=score) for n, score in enumerate(scores)]
        for scores in ([0, 1, 1] * 4, [1, 1, 0] * 4)
    )
    found = compare_graded(*(ScoredItems.of(CHARTHAL, rows) for rows in files))["by"]
    by_cell = {part: row["value"] for part, row in found["q_type and q_relation"].items()}
    assert by_cell == {"desc normal": 100, "open irrel": -100, "open normal": 0}
    assert {part: row["n"] for part, row in found["q_type"].items()} == {"desc": 4, "open": 8}


def eval_file(*scores: int) -> dict[str, Any]:
    """Return what ``evaluate.py`` of ChartHal's repository writes."""
    rows = [item(response="12", eval_resp=f"Score: {score}", score=score) for score in scores]
    return {f"{n}_0": {k: v for k, v in row.items() if k != "id"} for n, row in enumerate(rows)}


def write_in(path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    return str(write(path, content))


def test_a_clone_of_charthals_repository(tmp_path: Path) -> None:
    results = tmp_path / "results"
    write_in(results / "gpt-5-mini" / "eval.json", eval_file(1, 0))
    write_in(results / "qwen" / "eval.json", eval_file(1, 1))
    write_in(results / "qwen" / "score.json", {})
    write_in(tmp_path / "data" / "charthal.json", {})
    for folder in (tmp_path, results):
        models = read_models(CHARTHAL, [str(folder)], {})
        assert list(models) == ["gpt-5-mini", "qwen"]
    assert CHARTHAL.table(models["qwen"].rows)["overall"]["score"] == 100
    assert models["qwen"].source == str(results / "qwen" / "eval.json")
    assert list(read_models(CHARTHAL, [f"mine={results / 'qwen'}"], {})) == ["mine"]
    with pytest.raises(CustosError, match="a folder of several models; give it without a name"):
        read_models(CHARTHAL, [f"mine={tmp_path}"], {})
    with pytest.raises(CustosError, match="no results/MODEL/eval.json in this folder"):
        read_models(CHARTHAL, [str(tmp_path / "data")], {})


def test_a_simplevqa_file_with_several_models(tmp_path: Path) -> None:
    said = {"g4o_response": "正确", "qwen72B_response": {"conclusion": "**错误**"}}
    rows = [question(n, judge_res=said) for n in range(3)]
    path = write_in(tmp_path / "SimpleVQA_judge.json", rows)
    models = read_models(SIMPLEVQA, [path], {})
    assert list(models) == ["g4o", "qwen72B"]
    shares = [SIMPLEVQA.table(model.rows)["overall"]["CO"] for model in models.values()]
    assert shares == [1, 0]
    with pytest.raises(CustosError, match="holds the models g4o_response, qwen72B_response; give"):
        read_models(SIMPLEVQA, [f"x={path}"], {})


def test_the_results_of_truthfulvqas_code(tmp_path: Path) -> None:
    write_in(tmp_path / "results" / "extracted" / "qwen.json", ROWS)
    write_in(tmp_path / "results" / "metrics" / "qwen.json", {"overall_accuracy": 0.5})
    assert list(read_models(TRUTHFULVQA, [str(tmp_path / "results")], {})) == ["qwen"]
    write_in(tmp_path / "flat" / "llava.json", ROWS)
    write_in(tmp_path / "flat" / "metrics.json", {"overall_accuracy": 0.5})
    models = read_models(TRUTHFULVQA, [str(tmp_path / "flat")], {})
    assert list(models) == ["llava"]
    assert TRUTHFULVQA.table(models["llava"].rows)["overall_accuracy"] == 0.5
    for benchmark in (TRUTHFULVQA, HIEVAL):
        with pytest.raises(CustosError):
            read_models(benchmark, [str(tmp_path)], {})


def test_names_and_what_cannot_be_named(tmp_path: Path) -> None:
    path = write_in(tmp_path / "gpt.eval.json", eval_file(1, 0))
    assert list(read_models(CHARTHAL, [path], {})) == ["gpt"]
    assert list(read_models(CHARTHAL, [f"a={path}", f"b={path}"], {})) == ["a", "b"]
    odd = write_in(tmp_path / "a=b.json", eval_file(1, 0))
    assert list(read_models(CHARTHAL, [odd], {})) == ["a=b"]
    with pytest.raises(CustosError, match="there are two models 'gpt'; name them with MODEL=FILE"):
        read_models(CHARTHAL, [path, path], {})
    with pytest.raises(CustosError, match="--people other: not one of the models gpt"):
        read_models(CHARTHAL, [path], {"other": path})


def test_time_and_people_belong_to_their_model(tmp_path: Path) -> None:
    path = write_in(tmp_path / "gpt.json", eval_file(1, 0, 1))
    write_in(tmp_path / "gpt.json.run.json", {"judge": "j", "requests": 3, "seconds": 2})
    people = write_in(tmp_path / "people.json", {"0_0": {"score": 1}})
    model = read_models(CHARTHAL, [path], {"gpt": people})["gpt"]
    assert model.run == {"judge": "j", "requests": 3, "seconds": 2}
    assert [row["score"] for row in model.people] == [1]
    unknown = write_in(tmp_path / "unknown.json", {"zzz": {"score": 1}})
    with pytest.raises(CustosError, match="unknown.json: .*no item 'zzz'"):
        read_models(CHARTHAL, [path], {"gpt": unknown})


def responses(share: float, seed: int = 0) -> list[dict[str, Any]]:
    """Forty items on twenty figures, of which a share scores 1."""
    scores = np.random.default_rng(seed).random(40) < share
    return [
        item(("desc_normal", "open_irrel")[n % 2], id=str(n), figure_id=n // 2, score=int(score))
        for n, score in enumerate(scores)
    ]


def board(**models: list[dict[str, Any]]) -> dict[str, Any]:
    read = {name: GradedModel(CHARTHAL, rows, f"{name}.json") for name, rows in models.items()}
    return build_leaderboard(CHARTHAL, read)


def table_2(leaderboard: dict[str, Any]) -> dict[str, Any]:
    [table] = [table for table in leaderboard["tables"] if table["source"] == "Table 2"]
    return dict(table)


def test_models_stand_among_all_published_rows_from_the_best_down() -> None:
    taken = "GPT-4o-2024-11-20"
    low, high = responses(0.3), responses(0.9, 1)
    leaderboard = board(**{"low": low, "high": high, taken: responses(0.5)})
    assert list(leaderboard["models"]) == ["high", taken, "low"]
    rows = table_2(leaderboard)["rows"]
    published = next(table for table in CHARTHAL.published if table.source == "Table 2")
    assert {row["name"] for row in rows} == {*published.rows, "low", "high"}
    overall = [row["figures"][-2] for row in rows]
    values = [cell["value"] if isinstance(cell, dict) else cell for cell in overall]
    assert values == sorted(values, reverse=True)
    assert [row["name"] for row in rows if row["ours"]] == ["high", taken, "low"]
    for name, own in (("low", low), ("high", high)):
        [row] = [row for row in rows if row["name"] == name]
        expected = CHARTHAL.table(own)["intervals"]["overall"]["score"]
        assert row["figures"][-2:] == [expected, "uncorrected"]
        assert expected["low"] < expected["value"] < expected["high"]
    # A published name is not taken from its row.
    [theirs] = [row for row in rows if row["name"] == taken and not row["ours"]]
    assert theirs["figures"][-2:] == [32.49, None]


def test_every_pair_is_compared_as_bench_compare_does() -> None:
    models = {"a": responses(0.2), "b": responses(0.5, 1), "c": responses(0.9, 2)}
    differences = board(**models)["differences"]
    names = [difference["models"] for difference in differences]
    assert names == [["c", "b"], ["c", "a"], ["b", "a"]]
    for difference in differences:
        sides = (ScoredItems.of(CHARTHAL, models[name]) for name in difference["models"])
        expected = compare_graded(*sides)
        assert {key: difference[key] for key in expected} == expected
    p_values = [difference["p"] for difference in differences]
    # Holm: the smallest of three p-values counts threefold.
    smallest = int(np.argmin(p_values))
    assert differences[smallest]["p_holm"] == pytest.approx(min(1, 3 * min(p_values)))


def test_models_that_cannot_be_compared_have_tables_all_the_same() -> None:
    other = [{**row, "id": f"x{row['id']}"} for row in responses(0.5)]
    leaderboard = board(a=responses(0.5), b=other)
    assert leaderboard["differences"] == []
    assert len(leaderboard["not_compared"]) == 1
    # The shape that the README of TruthfulVQA's code asks for has no ``question_id``.
    bare = [{key: row[key] for key in row if key != "question_id"} for row in ROWS]
    models = {name: GradedModel(TRUTHFULVQA, rows) for name, rows in (("x", bare), ("y", ROWS))}
    leaderboard = build_leaderboard(TRUTHFULVQA, models)
    ours = [row for row in leaderboard["tables"][0]["rows"] if row["ours"]]
    assert [row["figures"][0]["value"] for row in ours] == [50, 50]
    assert leaderboard["not_compared"] == ["x: item 1: has no id: items are matched by id"]
    with pytest.raises(CustosError, match=r"bad.json: no item has a score of 0 or 1"):
        board(good=responses(0.5), bad=[item(id="1", response="x")])


def test_people_correct_the_headline_column_of_their_model() -> None:
    model = graded_with_people(1)
    models = {"corrected": model, "raw": GradedModel(CHARTHAL, responses(0.5))}
    table = table_2(build_leaderboard(CHARTHAL, models))
    assert table["columns"][-2:] == ["overall", "overall, corrected by people"]
    cells = {row["name"]: row["figures"][-1] for row in table["rows"]}
    assert cells["corrected"] == pytest.approx(corrected_score(model)["corrected"])
    assert cells["raw"] == "uncorrected"
    assert cells["GPT-5"] is None
    assert all(len(row["figures"]) == len(table["columns"]) for row in table["rows"])
