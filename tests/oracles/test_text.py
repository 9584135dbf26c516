from random import Random
from typing import Any

import pytest

from data_prep.made.quick_scores import generate_examples, responses
from data_prep.made.words.wordings import wordings_of
from judging.types import JudgeRequest, LabelledExample
from tests.oracles.report import disagreements
from tests.oracles.text import audit_text

PEOPLE = {"question": "Who founded Vos?", "reference_mode": "any"}
LABELS = {"all": ("Correct", "Partial", "Wrong"), "any": ("Correct", "Wrong")}


@pytest.mark.parametrize("wordings", ["train", "test"])
def test_clean_examples_pass(wordings: Any) -> None:
    rows = list(generate_examples(1800, seed=11, wordings=wordings))
    found = disagreements(rows, audit_text)
    assert len(found) <= 0.005 * len(rows), found
    seen = {row.metadata["form"] for row in rows}
    assert len(seen) > 0.9 * len(wordings_of(responses(), wordings))


def test_planted_label_errors_are_caught() -> None:
    rng = Random(5)
    planted = []
    for row in generate_examples(500, seed=12, wordings="all"):
        wrong = rng.choice([label for label in LABELS[row.reference_mode] if label != row.label])
        planted.append(row.model_copy(update={"label": wrong}))
    assert len(disagreements(planted, audit_text)) >= 495


def test_audit_sees_neither_label_nor_metadata() -> None:
    for row in generate_examples(200, seed=13, wordings="all"):
        blind = row.model_copy(update={"label": "?", "metadata": {}, "group": "", "id": ""})
        assert audit_text(blind) == audit_text(row)


def test_disagreements_name_row_and_reason() -> None:
    row = LabelledExample(
        id="x7", question="Which?", references=("2", "4"), responses=("2 and 5",), label="Partial"
    )
    found = disagreements([row.model_copy(update={"label": "Wrong"}), row], audit_text)
    assert found == {1: "Partial, read as Wrong: ['5'] outside ['2', '4']"}


def _read(response: str, *references: str, **fields: Any) -> str:
    fields.setdefault("question", "Which?")
    request = {"references": references, "response": response, **fields}
    return audit_text(JudgeRequest.model_validate(request)).label


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("12 and 15", "Correct"),
        ("15, 12", "Correct"),
        ("The numbers are 12 and 15.", "Correct"),
        ("twelve and fifteen", "Correct"),
        ("- 12\n- 15", "Correct"),
        ("First 12 / 3 = 4. So the answer is 12 and 15.", "Correct"),
        ("12", "Partial"),
        ("12, not 15.", "Partial"),
        ("12, 15, 18", "Wrong"),
        ("12 and 16", "Wrong"),
        ("The answer is 12 and 15. Wait, I misread that. The answer is 12 and 18.", "Wrong"),
        ("12 and 15 look right so far. Now I check whether the", "Wrong"),
        ("12 and 15 look right, so the final answer is", "Wrong"),
        ("I don't know.", "Wrong"),
        ("", "Wrong"),
        (" \n", "Wrong"),
    ],
)
def test_reads_sets(response: str, label: str) -> None:
    assert _read(response, "12", "15") == label


@pytest.mark.parametrize(
    ("response", "plain", "tolerance"),
    [
        ("1,000", "Correct", "Correct"),
        ("1e3 kilometres", "Correct", "Correct"),
        ("1049 km", "Wrong", "Correct"),
        ("1051 km", "Wrong", "Wrong"),
        ("1000 kg", "Wrong", "Wrong"),
    ],
)
def test_reads_numbers(response: str, plain: str, tolerance: str) -> None:
    assert _read(response, "1000 km") == plain
    assert _read(response, "1000 km", variant="tolerance") == tolerance


@pytest.mark.parametrize(
    ("references", "right", "wrong"),
    [
        (("50%",), ("0.5", "1/2", "fifty percent", "百分之五十"), ("5%",)),
        (("14 March 1921",), ("March 14, 1921", "1921-03-14", "14 Mar 1921"), ("15 March 1921",)),
        (
            ("Mira Kel Tolven", "Mira Tolven"),
            (
                "M. Tolven",
                "It was Mira Tolven who founded Vos.",
                "Vos was founded by Mira Tolven, who came after Bor Haln.",
                "Not Bor Haln but Mira Tolven.",
            ),
            (
                "Many would say Mira Tolven, but that is wrong. The answer is Bor Haln.",
                "Mira Tolven or Bor Haln",
                "Mira Tolvet",
                "B. Tolven",
            ),
        ),
    ],
)
def test_reads_spellings(
    references: tuple[str, ...], right: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    fields = {"question": "Which?"} if len(references) == 1 else PEOPLE
    for said, label in ((right, "Correct"), (wrong, "Wrong")):
        assert {_read(text, *references, **fields) for text in said} == {label}


@pytest.mark.parametrize(
    ("response", "label"),
    [
        ("箱子里的东西是纸灯笼、铜铃铛。", "Correct"),
        ("不是木碗，而是铜铃铛、纸灯笼。", "Correct"),
        ("铜铃铛。", "Partial"),
        ("铜铃铛、纸灯笼。不对，应该是铜铃铛、木碗。", "Wrong"),
        ("看起来可能是铜铃铛、纸灯笼，不过还需要检查", "Wrong"),
    ],
)
def test_reads_chinese(response: str, label: str) -> None:
    assert _read(response, "铜铃铛", "纸灯笼", question="箱子里有什么？") == label
