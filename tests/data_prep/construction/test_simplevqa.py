"""SimpleVQA's steps and Table 2."""

import re
from typing import Any

import pytest

from benchmarks.framework.base import get_benchmark
from benchmarks.simplevqa.item import parse_item
from data_prep.construction.steps.base import STEPS, Row
from data_prep.construction.steps.simplevqa import (
    DOMAINS,
    PUBLISHED,
    TASKS,
    Classified,
    ClassifiedItem,
    describe,
)
from data_prep.errors import UnusableText
from tests.data_prep.construction.made_up import reply
from tests.published_files import needs_published, published

PAIR = {
    "id": "1",
    "images": ("a.png",),
    "question1": "Is this artwork religious? Please answer yes or no.",
    "answer1": "Yes",
    "question2": "Is this artwork a landscape? Please answer yes or no.",
    "answer2": "No",
    "source": "MME",
}
HINT = {"id": "2", "hint": "Image: muffins cooling.", "query": "What can Carson test?"}
CHINESE = {"id": "3", "question": "图中是哪座城市?", "answer": "北京", "choices": ["北京", "上海"]}


def made(step_name: str, row: Row, **replied: Any) -> Row:
    step = STEPS.get(step_name)
    [new] = step.read(step.row_type.model_validate(row), reply(replied))
    return new


def test_a_pair_becomes_a_question() -> None:
    row = made(
        "simplevqa-rewrite", PAIR, question=" What kind of artwork is this? ", answer="religious",
        qualified=True,
    )  # fmt: skip
    assert row == {
        "id": "1",
        "images": ["a.png"],
        "source": "MME",
        "question": "What kind of artwork is this?",
        "answer": "religious",
        "language": "EN",
        "variant": "english",
        "seed": {name: PAIR[name] for name in ("question1", "answer1", "question2", "answer2")},
    }


@pytest.mark.parametrize(
    ("seed", "replied", "reason"),
    [
        (HINT, {"qualified": False, "reason": "the hint is empty"}, "not qualified"),
        (HINT, {"answer": " "}, "not qualified"),
        (HINT, {"question": "Which muffins cool here?"}, "answer in the question"),
        (HINT, {"question": "图中是什么?"}, "language changed"),
        (PAIR, {"answer": "landscape"}, "answer not from the question with yes"),
        (CHINESE, {"question": "Which city?", "answer": "北京"}, "language changed"),
        (CHINESE, {"question": "北京在哪里?", "answer": "北京"}, "answer in the question"),
    ],
)
def test_rewritten_questions_that_cannot_be_used(
    seed: Row, replied: dict[str, Any], reason: str
) -> None:
    given = {"question": "What is cooling?", "answer": "muffins", "qualified": True}
    with pytest.raises(UnusableText) as error:
        made("simplevqa-rewrite", seed, **(given | replied))
    assert error.value.reason == reason


def test_faults_reject_and_their_absence_keeps() -> None:
    item = {"id": "1", "question": "Where is this?", "answer": "Rome", "language": "EN"}
    analyses = {"question_analysis": "vague", "answer_analysis": "fine"}
    assert made("simplevqa-check", item, **analyses, question_faults=[], answer_faults=[]) == item
    with pytest.raises(UnusableText, match="ambiguous or vague: vague") as error:
        made(
            "simplevqa-check", item, **analyses, question_faults=["ambiguous or vague"],
            answer_faults=["uncertain"],
        )  # fmt: skip
    assert error.value.reason == "invalid question"
    with pytest.raises(UnusableText) as error:
        made("simplevqa-check", item, **analyses, question_faults=[], answer_faults=["uncertain"])
    assert error.value.reason == "invalid answer"
    with pytest.raises(UnusableText, match="question_faults") as error:
        made("simplevqa-check", item, **analyses, question_faults=["boring"], answer_faults=[])
    assert error.value.mendable


def test_the_atomic_question_is_asked_without_the_picture_and_the_fact_with_it() -> None:
    item = {"id": "1", "question": "When was it built?", "answer": "1889", "images": ("a.png",)}
    atomic = {"original_question": "When was it built?", "atomic_question": "What building is it?"}
    row = made("simplevqa-atomic", item, **atomic)
    assert row["atomic_question"] == "What building is it?"
    without, with_picture = (
        STEPS.get(name).item(STEPS.get(name).row_type.model_validate(row)).messages[1]
        for name in ("simplevqa-atomic", "simplevqa-fact")
    )
    assert (without.images, with_picture.images) == ((), ("a.png",))
    assert "Atomic question: What building is it?" in with_picture.text
    assert made("simplevqa-fact", row, atomic_fact="Eiffel Tower")["atomic_fact"] == "Eiffel Tower"


def test_classified_items_are_those_of_the_benchmark() -> None:
    assert (*TASKS, *DOMAINS) == get_benchmark("simplevqa").published[-1].columns
    annotations = Classified.model_json_schema()["properties"]
    assert annotations["task"]["enum"] == list(TASKS)
    assert annotations["domain"]["enum"] == list(DOMAINS)
    item = {"id": "1", "question": "Who is it?", "answer": "Ada", "language": "EN"}
    replied = {"task_analysis": "x", "task": "PE", "domain_analysis": "y", "domain": "NS"}
    official = parse_item(made("simplevqa-classify", item, **replied))
    assert (official.id, official.task, official.domain) == ("1", "PE", "NS")
    assert official.variant == "english"


def item(question: str, language: str, task: str, domain: str) -> ClassifiedItem:
    category = {"task_category": task, "subject_category": domain}
    fields = {"id": "1", "question": question, "language": language, "vqa_category": category}
    return ClassifiedItem.model_validate(fields)


def test_by_hand() -> None:
    table = describe(
        [
            item("Who painted it?", "EN", "PE", "AR"),
            item("Who is on the left side?", "EN", "PE", "LI"),
            item("图中是谁?", "CN", "PE", "LI"),
            item("图中是哪座城市?", "CN", "LB", "NS"),
        ]
    )
    assert list(table) == list(PUBLISHED)
    assert (table["Data"], table["Chinese (CN)"], table["English (EN)"]) == (4, 2, 2)
    assert (table["PE"], table["LB"], table["LS"]) == (0.75, 0.25, 0)
    assert (table["LI"], table["AR"]) == (0.5, 0.25)
    assert (table["Max query words"], table["Min query words"]) == (7, 3)


@needs_published("simplevqa.txt")
def test_published_figures_are_the_papers() -> None:
    text = published("simplevqa.txt").read_text(encoding="utf-8")
    table = text.split("Statistics\tNumber\tStatistics\tNumber")[1].split("Table 2.")[0]
    shares = re.findall(r"- ([^\t(]+?) ?\((\w+)\)\t([\d.]+)%", table)
    names = {**TASKS, **DOMAINS}
    assert {code: float(share) / 100 for _, code, share in shares} == pytest.approx(
        {code: PUBLISHED[code] for code in names}
    )
    assert {code: name for name, code, _ in shares} == names
    numbers = dict(re.findall(r"(Max query words|Min query words|\(CN\)|\(EN\))\t(\d+)", table))
    assert numbers == {
        "Max query words": "314",
        "Min query words": "5",
        "(CN)": "1012",
        "(EN)": "1013",
    }
