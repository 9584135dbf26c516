from random import Random
from typing import Any

import pytest

from data_prep.made.pairs import PairRow, generate_pairs
from data_prep.sources.conversations import MADE_UP, MISREAD, MISREASONED, OFF_TOPIC, PADDED
from judging.types import LabelledExample
from tests.oracles.pairs import audit_pair
from tests.oracles.report import disagreements

TAGS = (MISREAD, MISREASONED, OFF_TOPIC, MADE_UP, PADDED)


@pytest.mark.parametrize(("wordings", "pictures"), [("train", 0.0), ("test", 0.0), ("test", 1.0)])
def test_clean_pairs_pass(wordings: Any, pictures: float) -> None:
    pairs = list(generate_pairs(6 if pictures else 800, 21, wordings, pictures))
    rows = [example for row in pairs for example in (row.pair, row.swapped)]
    found = disagreements(rows, audit_pair)
    assert len(found) <= 0.001 * len(rows), found


def test_planted_errors_are_caught() -> None:
    rng = Random(5)
    pairs = list(generate_pairs(500, 22, "test", 0.0))
    planted = [_plant(rng, row) for row in pairs]
    missed = sorted(set(range(500)) - disagreements(planted, audit_pair).keys())
    assert len(missed) <= 5, [planted[i] for i in missed[:3]]


def _plant(rng: Random, row: PairRow) -> LabelledExample:
    """The pair with one thing made untrue: label, order, critique, tags or reference."""
    pair = row.pair
    ways = ["label", "tags"]
    if pair.label != "None":
        ways += ["responses", "critique"]
    if pair.references:
        ways.append("reference")
    way = rng.choice(ways)
    if way == "label":
        wrong = rng.choice([x for x in ("A", "B", "None") if x != pair.label])
        return pair.model_copy(update={"label": wrong})
    if way == "tags":
        return pair.model_copy(update={"tags": tuple(set(TAGS) - set(pair.tags))})
    if way == "responses":
        return pair.model_copy(update={"responses": pair.responses[::-1]})
    if way == "critique":
        return pair.model_copy(update={"critique": row.swapped.critique})
    return pair.model_copy(update={"references": ("77",)})


def test_audit_sees_neither_label_nor_how_the_row_was_made() -> None:
    for row in generate_pairs(200, 23, "train", 0.0):
        readings = {"readings": row.pair.metadata["readings"]}
        blind = row.pair.model_copy(update={"label": "?", "metadata": readings})
        assert audit_pair(blind).label == row.pair.label


def _read(first: str, second: str, **fields: Any) -> str:
    given = {
        "task": "truthful-pair",
        "question": "What is the value of A?",
        "references": ("5",),
        "responses": (first, second),
        "label": "?",
        "metadata": {"readings": {"value": {"A": 5, "B": 1, "C": 2}}},
    }
    return audit_pair(LabelledExample.model_validate(given | fields)).label


def test_reads_pairs_by_hand() -> None:
    tags: dict[str, Any] = {"tags": (MISREAD,)}
    assert _read("I look at A at 5. The answer is 5.", "I look at A at 4. Answer: 4", **tags) == "A"
    assert _read("5", "Answer: 5") == "None"
    padded = "5. By the way, the colours are pleasant."
    assert _read(padded, "5", tags=(PADDED,)) == "B"
    assert _read(padded, "I look at A (6). Answer: 6", tags=(PADDED, MISREAD)) == "A"
    assert _read(padded, "5") == ""  # a fault that is not marked
    described = "The picture holds bar: A 5, B 1, C 2. What is the value of A?"
    assert _read("Final answer: 1.", "5", question=described, references=()) == "B"
    assert _read("1", "5", question=described, references=(), tags=(MISREASONED,)) == ""  # unseen
    worked_out = "The smallest one is meant, so 1. Answer: 1"
    assert _read(worked_out, "5", question=described, references=(), tags=(MISREASONED,)) == "B"
    changed = described.replace("B 1", "B 3")
    assert _read("1", "5", question=changed, references=()) == ""
