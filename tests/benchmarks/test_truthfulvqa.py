"""TruthfulVQA: options by two readings, levels, stated confidence, and logits of options."""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.framework import responses
from benchmarks.framework.base import get_benchmark
from benchmarks.framework.leaderboard import number_of
from benchmarks.framework.report.page import interval_cells
from benchmarks.framework.responses import build_questions
from benchmarks.truthfulvqa.benchmark import (
    BY_CATEGORY,
    BY_CELL,
    BY_LEVEL,
    CALIBRATION,
    CATEGORIES,
    OVER_LEVELS,
    cai,
)
from benchmarks.truthfulvqa.logits import measure_lal, option_logits
from clients.chat import JobResult, Reply
from judging.errors import CustosError, FieldError
from judging.files.pictures import read_image
from judging.models.backbones import load_backbone
from judging.scoring.prompts import Encoder
from tests.cli.bench.made_up import run
from tests.conftest import Folders
from tests.tiny import save_picture

TRUTHFULVQA = get_benchmark("truthfulvqa")


def item(number: int, level: int, response: str, truth: str = "D", **fields: Any) -> dict[str, Any]:
    return {
        "question_id": number,
        "category": "Eye Illusion",
        "subcategory": "Optical Illusions",
        "level": level,
        "ground_truth": truth,
        "response": response,
        **fields,
    }


ROWS = [
    item(0, 1, "(D)"),
    item(1, 1, "(D)"),
    item(2, 2, "(D)"),
    item(3, 2, "I choose (B), not D."),
    item(4, 3, "(A)", category="Information Hiding", subcategory="Blur"),
    item(5, 3, "(D)"),
    item(6, 3, "(C)"),
    item(7, 3, "none of them fits", category="Information Hiding", subcategory="Blur"),
]


def test_the_table() -> None:
    table = TRUTHFULVQA.table(ROWS)
    assert table["overall_accuracy"] == 4 / 8
    assert table["level_accuracies"] == {"1": 1, "2": 1 / 2, "3": 1 / 4}
    assert table["category_accuracies"] == pytest.approx(
        {"Eye Illusion": 4 / 6, "Information Hiding": 0}
    )
    assert table["subcategory_accuracies"] == pytest.approx({"Optical Illusions": 4 / 6, "Blur": 0})
    assert table["level_mean"] == pytest.approx(7 / 12)
    assert table["level_variance"] == pytest.approx(np.var([1, 1 / 2, 1 / 4]))
    assert table["cai"] == pytest.approx((1 - 1 / 2) / 1 + (1 / 4 - 1 / 2) / (1 / 2))
    assert (table["n"], table["unreadable"], table["coverage"]) == (8, 1, 7 / 8)
    interval = table["intervals"]["overall_accuracy"]
    assert interval["low"] < 0.5 < interval["high"]
    assert table["intervals"]["level_accuracies"]["3"]["n"] == 4
    for name, most in (("level_mean", 1), ("level_variance", 2 / 9)):
        assert 0 <= table["intervals"][name]["low"] < table["intervals"][name]["high"] <= most
    assert table["as_stated"].keys() >= {"overall_accuracy", "level_accuracies", "cai"}
    scores = TRUTHFULVQA.scores(ROWS)
    assert [score.value for score in scores] == [1, 1, 1, 0, 0, 1, 0, 0]
    assert [score.id for score in scores] == [str(number) for number in range(8)]


@pytest.mark.parametrize("spelling", [str, float])
def test_levels_of_tables_are_texts_or_fractions(spelling: Callable[[int], Any]) -> None:
    rows = [{**row, "level": spelling(row["level"])} for row in ROWS]
    assert TRUTHFULVQA.table(rows) == TRUTHFULVQA.table(ROWS)
    results = [result("s", spelling(n), logits) for n, logits in ((1, ONE), (2, TWO), (3, THREE))]
    assert measure_lal(results)["complete_sets"] == 1


def test_grading_needs_no_judge_and_adds_the_official_fields() -> None:
    row = item(3, 2, "(B)")
    assert TRUTHFULVQA.requests(row) == ()
    # Grading again forgets what was read before.
    for before in ({}, {"extracted_answer": "D"}):
        graded = TRUTHFULVQA.graded_row({**row, **before}, [])
        assert (graded["extracted_answer"], graded["is_correct"]) == ("B", False)
    hub = {key: value for key, value in row.items() if key != "ground_truth"} | {"answer": "B"}
    for right in (hub, hub | {"ground_truth": None}):
        assert TRUTHFULVQA.graded_row(right, [])["is_correct"] is True
    assert TRUTHFULVQA.graded_row(item(0, 1, "no idea"), [])["extracted_answer"] is None
    assert TRUTHFULVQA.table([TRUTHFULVQA.graded_row(row, [])])["overall_accuracy"] == 0
    for field in ("answer", "response"):
        with pytest.raises(FieldError) as error:
            TRUTHFULVQA.graded_row({**hub, field: None}, [])
        assert (error.value.location, error.value.field) == ("item '3'", field)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"answer": "A", "response": None}, "response"),
        ({"answer": None}, "answer"),
        ({"ground_truth": None}, "ground_truth"),
        ({}, "answer"),
        ({"ground_truth": None, "answer": "yes"}, "answer"),
        ({"ground_truth": "yes"}, "ground_truth"),
        ({"answer": "A", "level": None}, "level"),
        ({"answer": "A", "level": 4}, "level"),
        ({"answer": "A", "level": True}, "level"),
    ],
)
def test_rows_that_do_not_fit(changes: dict[str, Any], wrong: str) -> None:
    """Name the field of the user's file, which has no ``ground_truth`` before the grading."""
    row = item(3, 2, "(B)")
    del row["ground_truth"]
    with pytest.raises(FieldError) as error:
        TRUTHFULVQA.requests({**row, **changes})
    assert (error.value.location, error.value.field) == ("item '3'", wrong)
    with pytest.raises(CustosError):
        TRUTHFULVQA.table([])


def test_rows_beside_the_published_ones() -> None:
    table = TRUTHFULVQA.table(ROWS)
    rows = TRUTHFULVQA.paper_rows(table, "mine")
    assert [*map(number_of, rows[BY_LEVEL]["mine"])] == [50, 100, 50, 25]
    assert [*map(number_of, rows[OVER_LEVELS]["mine"])] == [
        table["level_mean"],
        table["level_variance"],
    ]
    by_category = dict(zip(CATEGORIES, map(number_of, rows[BY_CATEGORY]["mine"]), strict=True))
    assert by_category["Eye Illusion"] == pytest.approx(400 / 6)
    assert by_category["Contextual Bias"] is None
    assert CALIBRATION not in rows  # no response states a confidence
    columns = {published.source: published.columns for published in TRUTHFULVQA.published}
    assert all(len(row["mine"]) == len(columns[source]) for source, row in rows.items())


def test_stated_confidence_in_bins_of_equal_width() -> None:
    """Three answers at .94 and .98, of which two are right, share the last of 15 bins."""
    said = ["(D)[0.94]", "(D)[0.98]", "(A)[0.98]", "(D)[0.5]", "(D)", "no idea [0.4]"]
    table = TRUTHFULVQA.table([item(n, 1 + n % 3, text) for n, text in enumerate(said)])
    gaps = [abs((0.94 + 0.98 + 0.98) - 2), abs(0.5 - 1)]
    assert table["calibration"]["ece_equal_width"] == pytest.approx(sum(gaps) / 4)
    assert table["intervals"]["ece"]["n"] == 4
    [cell] = TRUTHFULVQA.paper_rows(table, "mine")[CALIBRATION]["mine"]
    assert number_of(cell) == pytest.approx(sum(gaps) / 4)
    assert table["calibration"]["by_confidence"]["0.9-1.0"]["accuracy"] == pytest.approx(2 / 3)


def test_a_mean_confidence_may_not_exceed_1_and_a_calibration_error_stands_beside_chance() -> None:
    said = ["(D)[1.0]"] * 9 + ["(D)[0.5]"]
    found = TRUTHFULVQA.table([item(n, 1, text) for n, text in enumerate(said)])["intervals"]
    mean = found["calibration"]["confidence"]
    assert mean["low"] < mean["value"] == pytest.approx(0.95)
    assert mean["value"] < mean["high"] <= 1
    error = found["calibration"]["ece"]
    assert error["value"] == pytest.approx(0.05)
    # One row of ten errs in half of all cases: its gap is .5 either way.
    assert (error["chance"]["mean"], error["chance"]["high"]) == pytest.approx((0.05, 0.05))
    assert interval_cells(error) == ("0.05", "chance 0.050, up to 0.050", "10")


def test_there_are_15_bins() -> None:
    """The last begins at .9333; with 14 bins it would begin before .93, with 16 after .936."""
    said = ["(D)[0.93]", "(A)[0.936]"]
    table = TRUTHFULVQA.table([item(n, 1, text) for n, text in enumerate(said)])
    apart = (abs(0.93 - 1) + abs(0.936 - 0)) / 2
    assert table["calibration"]["ece_equal_width"] == pytest.approx(apart)


def test_both_readings_are_kept_and_counted() -> None:
    said = ("Answer: B because A is wrong", "(B)", "<think>(B)", "c) a pear", "a plum")
    rows = [
        item(number, 1 + number % 3, text, "B", options=["a peach", "a plum", "a pear"])
        for number, text in enumerate(said)
    ]
    graded = [TRUTHFULVQA.graded_row(row, []) for row in rows]
    assert [row["extracted_answer"] for row in graded] == ["A", "B", "B", None, None]
    assert [row["stated_answer"] for row in graded] == ["B", "B", None, "C", "B"]
    assert [row["is_correct"] for row in graded] == [False, True, True, False, False]
    table = TRUTHFULVQA.table(graded)
    assert table == TRUTHFULVQA.table(rows)
    assert (table["overall_accuracy"], table["as_stated"]["overall_accuracy"]) == (2 / 5, 3 / 5)
    assert (table["unreadable"], table["unreadable_as_stated"]) == (2, 1)
    assert table["read_differently"] == 4
    assert TRUTHFULVQA.table(ROWS)["read_differently"] == 0


def test_category_by_level_in_24_cells() -> None:
    rows = [
        item(number, level, "(D)" if number % (place + 1) == 0 else "(A)", category=category)
        for place, category in enumerate(CATEGORIES)
        for level in (1, 2, 3)
        for number in range(level + 4)
    ]
    row = TRUTHFULVQA.paper_rows(TRUTHFULVQA.table(rows), "mine")[BY_CELL]["mine"]
    expected = []
    for category in CATEGORIES:
        for level in (1, 2, 3):
            of_cell = [r for r in rows if (r["category"], r["level"]) == (category, level)]
            expected.append(100 * sum("D" in r["response"] for r in of_cell) / len(of_cell))
    assert [*map(number_of, row)][1:] == pytest.approx(expected)
    assert len(expected) == 24


def test_published_level_means_give_their_own_cai() -> None:
    # 81.85, 55.37, 44.96 over more than 50 models.
    assert cai(np.array([0.8185, 0.5537, 0.4496])) == pytest.approx(
        (81.85 - 55.37) / 81.85 + (44.96 - 55.37) / 55.37
    )
    assert np.isnan(cai(np.array([[0.0, 0.5, 0.5], [0.5, 0.0, 0.5]]))).all()


def result(set_id: str, level: int, logits: Any, answer: Any = "A") -> dict[str, Any]:
    case = {"set_id": set_id, "id": f"{set_id}_level{level}", "level": level, "answer": answer}
    return {"case": case, "result": {"option_logits": logits}}


ONE = {"A": 5.0, "B": 1.0, "C": 0.0, "D": -3.0}
TWO = {"A": 2.0, "B": 4.0, "C": 0.0, "D": 0.0}
THREE = {"A": 3.0, "B": 0.0, "C": 2.0, "D": -1.0}
RESULTS = [result("s", 3, THREE), result("s", 1, ONE), result("s", 2, TWO), result("t", 1, ONE)]


def test_by_hand() -> None:
    found = measure_lal(RESULTS)
    item = found["items"][0]
    assert item == {
        "set_id": "s",
        # A: 5 - 1 = 4 of span 8, 2 - 4 = -2 of span 4, 3 - 2 = 1 of span 4.
        "lal_1_to_2": 6.0,
        "lal_norm_1_to_2": 1.0,
        "correct_degradation_1_to_2": 3.0,
        "incorrect_amplification_1_to_2": 3.0,
        "lal_2_to_3": -3.0,
        "lal_norm_2_to_3": -0.75,
        "correct_degradation_2_to_3": -1.0,
        "incorrect_amplification_2_to_3": -2.0,
        "lal_1_to_3": 3.0,
        "lal_norm_1_to_3": 0.25,
        "correct_degradation_1_to_3": 2.0,
        "incorrect_amplification_1_to_3": 1.0,
    }
    assert math.isnan(found["items"][1]["lal_1_to_2"])
    assert found["mean"]["lal_1_to_2"] == 6.0
    assert found["intervals"]["lal_1_to_2"]["n"] == 1
    assert (found["sets"], found["complete_sets"]) == (2, 1)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "the data is empty"),
        ([{"case": {"set_id": "s"}, "result": {}}], "row 1: needs 'case'"),
        ([result("s", 4, ONE)], "row 1: field 'level'"),
        ([result("s", True, ONE)], "row 1: field 'level'"),
        ([result("s", 1, ONE), result("s", 1, ONE)], "row 2: set 's' has level 1 twice"),
        ([result("s", 1, {"B": 1.0, "C": 2.0})], "row 1: field 'option_logits'"),
        ([result("s", 1, [1.0, 2.0])], "row 1: field 'option_logits'"),
        ([result("s", 1, {"A": 1.0})], "row 1: field 'option_logits'"),
        ([result("s", 1, {"A": math.nan, "B": 1.0})], "row 1: field 'option_logits'"),
        ([result("s", 1, ONE, ["A"])], "row 1: field 'answer'"),
    ],
)
def test_faults_are_named(results: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(CustosError, match=message):
        measure_lal(results)


REPLY_TEXTS = {
    "q1": "The river is green in spring (A), and yet it is the brown one: ",
    "q2": "<think>(C)? Neither shows it.</think>\nThe answer is ",
    "q3": "",
}
"""What a model wrote before the letter of its option."""


def _items(folder: Path) -> list[dict[str, Any]]:
    picture = save_picture(folder / "a.png", 84, 56)
    return [
        {
            "question_id": f"q{level}",
            "set_id": "s1",
            "level": level,
            "question": "Which river" + " runs" * level + "?",
            "options": ["green", "brown", "red", "blue"][: 4 if level < 3 else 3],
            "answer": "(B)",
            "images": [picture] if level == 2 else [],
        }
        for level in (1, 2, 3)
    ]


def _replies(**changed: Reply) -> dict[str, Reply]:
    """Answers that reason, and then name option B as ``(B)``."""
    return {name: Reply(text=f"{said}(B).") for name, said in REPLY_TEXTS.items()} | changed


@pytest.fixture
def in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = partial(load_backbone, dtype="float32", device="cpu")
    monkeypatch.setattr("judging.models.backbones.load_backbone", exact)


def test_logits_are_the_librarys_after_the_models_own_words(
    tiny_folder: str, tmp_path: Path, in_float32: None
) -> None:
    rows = _items(tmp_path)
    asked = build_questions(TRUTHFULVQA, rows, "standard")
    told: list[int] = []
    results, problems = option_logits(
        TRUTHFULVQA, rows, asked, _replies(), tiny_folder, told.append
    )
    assert problems == {}
    assert told[-1] == 3
    backbone = load_backbone(tiny_folder, dtype="float32", device="cpu")
    by_id = {one["case"]["id"]: one for one in results}
    for row, question in zip(rows, asked, strict=True):
        [message] = question.chat.messages
        content: list[dict[str, Any]] = [
            {"type": "image", "image": read_image(name)} for name in message.images
        ]
        encoded = backbone.processor.apply_chat_template(
            [{"role": "user", "content": [*content, {"type": "text", "text": message.text}]}],
            tokenize=True,
            return_dict=True,
            add_generation_prompt=True,
            return_tensors="pt",
        )
        before = REPLY_TEXTS[row["question_id"]] + "("
        opened = backbone.tokenizer.encode(before, add_special_tokens=False)
        for key, more in (("input_ids", opened), ("attention_mask", [1] * len(opened))):
            encoded[key] = torch.cat([encoded[key], torch.tensor([more])], dim=1)
        if "mm_token_type_ids" in encoded:
            types = torch.zeros(1, len(opened), dtype=encoded["mm_token_type_ids"].dtype)
            encoded["mm_token_type_ids"] = torch.cat([encoded["mm_token_type_ids"], types], dim=1)
        with torch.inference_mode():
            expected = backbone.model(**encoded).logits[0, -1]
        given = by_id[row["question_id"]]["result"]["option_logits"]
        assert list(given) == list("ABCD")[: len(row["options"])]
        for letter, value in given.items():
            [token] = backbone.tokenizer.encode(letter, add_special_tokens=False)
            assert value == pytest.approx(float(expected[token]), abs=2e-4)
    # A constant added to all logits of one level moves both parts, as no probability would.
    logits = {one["case"]["level"]: one["result"]["option_logits"] for one in results}
    mean = measure_lal(results)["mean"]
    fall = logits[1]["B"] - logits[2]["B"]
    assert mean["correct_degradation_1_to_2"] == pytest.approx(fall)
    others = [max(v for k, v in logits[level].items() if k != "B") for level in (1, 2)]
    assert mean["incorrect_amplification_1_to_2"] == pytest.approx(others[1] - others[0])


def test_the_letters_are_tokens_in_the_form_that_the_model_uses(
    tmp_path: Path, in_float32: None
) -> None:
    """After ``is`` the embedded tokenizer writes `` B``, which is another token than ``B``."""
    rows = _items(tmp_path)[:1]
    asked = build_questions(TRUTHFULVQA, rows, "standard")
    replies = {"q1": Reply(text="The answer is B")}
    [result], problems = option_logits(TRUTHFULVQA, rows, asked, replies, "embedded")
    assert problems == {}
    backbone = load_backbone("embedded", dtype="float32", device="cpu")
    [message] = asked[0].chat.messages
    prompt = Encoder(backbone).encode_question(message.text)
    tokenizer = backbone.tokenizer
    ids = [*prompt.suffix_ids, *tokenizer.encode("The answer is", add_special_tokens=False)]
    with torch.inference_mode():
        expected = backbone.model(input_ids=torch.tensor([ids])).logits[0, -1]
    letters = [tokenizer.encode(f" {letter}", add_special_tokens=False) for letter in "ABCD"]
    assert [len(tokens) for tokens in letters] == [1, 1, 1, 1]
    given = list(result["result"]["option_logits"].values())
    assert given == pytest.approx([float(expected[token]) for [token] in letters], abs=2e-4)


def test_what_cannot_be_read_is_named_and_the_rest_measured(
    tiny_folders: Folders, tmp_path: Path, in_float32: None
) -> None:
    rows = _items(tmp_path)
    asked = build_questions(TRUTHFULVQA, rows, "standard")
    rows[0]["answer"] = "none of these"
    (tmp_path / "a.png").write_bytes(b"no picture")
    backbone = tiny_folders("qwen3_vl")
    results, problems = option_logits(TRUTHFULVQA, rows, asked, _replies(), backbone)
    assert ([one["case"]["id"] for one in results], set(problems)) == (["q3"], {1, 2})
    for reply in (Reply(text="No."), Reply(text="(B", finish_reason="length")):
        results, problems = option_logits(TRUTHFULVQA, rows, asked, _replies(q3=reply), backbone)
        assert (results, set(problems)) == ([], {1, 2, 3})


def test_the_command_writes_what_lal_reads(
    tiny_folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items, out = tmp_path / "items.json", tmp_path / "out.json"
    rows = [{k: v for k, v in row.items() if k != "images"} for row in _items(tmp_path)]
    items.write_text(json.dumps(rows), encoding="utf-8")
    command = ("respond", "truthfulvqa", "--items", items, "--out", out, "--option-logits")
    refused = run(*command, "--base-url", "http://x/v1", "--model", "m")
    assert refused.exit_code == 2
    assert "--option-logits" in refused.stderr
    local = (*command, "--backbone", tiny_folders("qwen2_5_vl"))
    assert run(*local, "--max-tokens", "2").exit_code == 1  # the answers are not whole
    answered = JobResult(replies=_replies(), rejects=[], num_reused=0)
    monkeypatch.setattr(responses, "ask_backbone", lambda *args, **options: answered)
    done = run(*local, "--model", "not-asked")
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "out.json.manifest.json").read_text())
    assert manifest["model"] == tiny_folders("qwen2_5_vl")
    table = tmp_path / "lal.json"
    lal = run("lal", "--results", tmp_path / "out.json.logits.json", "--json", table)
    assert lal.exit_code == 0, lal.output
    assert "1 sets, 1 with all three levels" in lal.stdout
    written = json.loads((tmp_path / "out.json.logits.json").read_text())
    assert json.loads(table.read_text())["mean"] == measure_lal(written)["mean"]
