"""Table 2 of SimpleVQA, of one's own items and as published."""

import re

import pytest

from data_prep.construction.steps.simplevqa import (
    DOMAINS,
    PUBLISHED,
    TASKS,
    ClassifiedItem,
    describe,
)
from tests.published_files import needs_published, published


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


def test_shares_of_the_paper_add_up() -> None:
    for names in (TASKS, DOMAINS):
        assert sum(PUBLISHED[code] for code in names) == pytest.approx(1, abs=2e-4)


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
