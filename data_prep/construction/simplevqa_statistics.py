"""Statistics of a set of SimpleVQA's kind, in the rows of the paper's Table 2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from data_prep.construction.steps.base import StepRow
from data_prep.construction.steps.simplevqa import DOMAINS, TASKS, DomainCode, TaskCode
from data_prep.splits.filters import count_words

PUBLISHED: Mapping[str, float] = {
    "Data": 2025,
    "Chinese (CN)": 1012,
    "English (EN)": 1013,
    "LS": 0.0504, "OIR": 0.1407, "TE": 0.0998, "PE": 0.1358, "LB": 0.2153,
    "TP": 0.1007, "QPR": 0.1012, "AC": 0.0909, "OAR": 0.0652,
    "LES": 0.1348, "EHC": 0.1289, "CS": 0.1151, "ETA": 0.0795, "FTM": 0.1062,
    "NS": 0.1264, "AR": 0.0765, "CHC": 0.0968, "LI": 0.1358,
    "Max query words": 314,
    "Min query words": 5,
}  # fmt: skip
"""Table 2: numbers, and shares of the tasks and domains."""


class Category(BaseModel):
    """Task and domain of an item, as the official files name them."""

    model_config = ConfigDict(frozen=True)

    task_category: TaskCode
    subject_category: DomainCode


class ClassifiedItem(StepRow):
    """An item after step ``simplevqa-classify``."""

    question: str
    language: Literal["CN", "EN"]
    vqa_category: Category


def describe(items: Sequence[ClassifiedItem]) -> dict[str, float]:
    """Return Table 2 of these items, under the names of ``PUBLISHED``.

    Words are runs of letters and digits; in Chinese, characters. The paper does not say how it
    counts them.

    Args:
        items: At least one.
    """
    languages = Counter(item.language for item in items)
    tasks: Counter[str] = Counter(item.vqa_category.task_category for item in items)
    domains: Counter[str] = Counter(item.vqa_category.subject_category for item in items)
    words = [count_words(item.question) for item in items]
    return {
        "Data": len(items),
        "Chinese (CN)": languages["CN"],
        "English (EN)": languages["EN"],
        **{code: tasks[code] / len(items) for code in TASKS},
        **{code: domains[code] / len(items) for code in DOMAINS},
        "Max query words": max(words),
        "Min query words": min(words),
    }
