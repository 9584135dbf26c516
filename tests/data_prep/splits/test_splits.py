"""Splits by question and label, and what is filtered out before."""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data_prep.splits.filters import (
    count_words,
    drop_trivial,
    excluded_hash,
    keep_contested,
    read_excluded,
    read_verdicts,
    without_excluded,
)
from data_prep.splits.splits import (
    SPLITS,
    HeldOut,
    Splits,
    deal_made,
    split_beside_test,
    split_examples,
)
from judging.errors import CustosError
from judging.types import LabelledExample, Split
from tests.data_prep.examples import example

LABELS = ("Correct", "Partial", "Wrong")


@st.composite
def data_sets(draw: st.DrawFn) -> list[LabelledExample]:
    """Questions of up to six answers, unequal label shares, some questions joined by a group."""
    seed = draw(st.integers(0, 10**6))
    num_questions = draw(st.integers(1, 120))
    rng = random.Random(seed)
    examples = []
    for number in range(num_questions):
        group = f"topic {rng.randrange(30)}" if rng.random() < 0.2 else ""
        for answer in range(rng.randint(1, 6)):
            label = rng.choices(LABELS, [6, 1, 3])[0]
            examples.append(
                example(f"What is item {number}?", label, id=f"{number}-{answer}", group=group)
            )
    return examples


def dump(splits: Splits) -> dict[str, list[dict[str, Any]]]:
    return {split: [member.model_dump() for member in splits[split]] for split in SPLITS}


def label_counts(examples: list[LabelledExample]) -> Counter[str]:
    return Counter(member.label for member in examples)


@settings(deadline=None, max_examples=60)
@given(examples=data_sets(), seed=st.integers(0, 5))
def test_properties_of_a_split(examples: list[LabelledExample], seed: int) -> None:
    held_out = HeldOut(val=0.1, cal=0.1, test=0.2)
    shares = {"train": 0.6, "val": 0.1, "cal": 0.1, "test": 0.2}
    splits = split_examples(examples, held_out, seed)

    placed = [member.id for split in SPLITS for member in splits[split]]
    assert sorted(placed) == sorted(member.id for member in examples), "each in exactly one split"
    for split in SPLITS:
        assert {member.split for member in splits[split]} <= {split}

    for key in ("group", "question"):
        homes: dict[str, set[str]] = {}
        for split in SPLITS:
            for member in splits[split]:
                homes.setdefault(getattr(member, key), set()).add(split)
        assert all(len(where) == 1 for where in homes.values()), f"a {key} in two splits"
    given_group = {member.id: member.group for member in examples if member.group}
    homes = {}
    for split in SPLITS:
        for member in splits[split]:
            if member.id in given_group:
                homes.setdefault(given_group[member.id], set()).add(split)
    assert all(len(where) == 1 for where in homes.values()), "a group as given in two splits"

    largest = max(Counter(member.group for split in SPLITS for member in splits[split]).values())
    total = label_counts(examples)
    for split in SPLITS:
        counts = label_counts(splits[split])
        for label in LABELS:
            assert abs(counts[label] - shares[split] * total[label]) <= largest + 1


@settings(deadline=None, max_examples=20)
@given(examples=data_sets(), order=st.randoms(use_true_random=False))
def test_input_order_does_not_matter(examples: list[LabelledExample], order: random.Random) -> None:
    reordered = examples.copy()
    order.shuffle(reordered)
    assert dump(split_examples(examples, seed=3)) == dump(split_examples(reordered, seed=3))


def singles(number: int) -> list[LabelledExample]:
    return [
        example(f"What is item {i}?", "Wrong" if i % 4 == 0 else "Correct", id=str(i))
        for i in range(number)
    ]


def sizes(splits: Mapping[Any, Sequence[Any]]) -> dict[str, int]:
    return {split: len(members) for split, members in splits.items()}


def test_split_beside_test_leaves_out_what_is_too_like_the_test() -> None:
    training = [*singles(100), example("Who sang at the opening gala last night?", id="leak")]
    test = [example("who sang at opening gala last night", id="t", group="gala")]
    splits, num_left_out = split_beside_test(training, test, HeldOut(val=10, cal=0.1, test=0.2))
    assert num_left_out == 1
    assert [member.id for member in splits["test"]] == ["t"]
    assert splits["test"][0].split == "test"
    assert sizes(splits) == {"train": 80, "val": 10, "cal": 10, "test": 1}
    assert "leak" not in {m.id for split in ("train", "val", "cal") for m in splits[split]}


@pytest.mark.parametrize(
    ("number", "held_out"),
    [
        (0, HeldOut()),
        (10, HeldOut(val=0.5, cal=0.3, test=0.2)),
        (10, HeldOut(val=0, cal=0, test=10)),
        (10, HeldOut(val=1.5)),
    ],
)
def test_impossible_sizes(number: int, held_out: HeldOut) -> None:
    with pytest.raises(CustosError):
        split_examples(singles(number), held_out)


def topics(counts: list[int]) -> list[LabelledExample]:
    return [
        example(f"What is item {i} of topic {topic}?", id=f"{topic}-{i}", group=f"topic {topic}")
        for topic, size in enumerate(counts)
        for i in range(size)
    ]


def test_large_groups_are_shared_out_and_do_not_spoil_the_sizes() -> None:
    splits = split_examples(topics([6] * 40 + [1] * 240), HeldOut(val=0.1, cal=0.1, test=0.3))
    num_large = {
        split: sum(size == 6 for size in Counter(member.group for member in members).values())
        for split, members in splits.items()
    }
    assert num_large == {"train": 20, "val": 4, "cal": 4, "test": 12}
    examples = topics([40] + [1] * 160)
    for seed in range(10):
        splits = split_examples(examples, HeldOut(val=0.1, cal=0.1, test=0.3), seed)
        assert [len(splits[split]) for split in SPLITS] == [100, 20, 20, 60]


def test_whole_groups_fill_val_then_cal_then_train() -> None:
    rows = [f"{group}{number}" for group in "abcdefghij" for number in range(3)]

    def dealt(seed: int) -> dict[Split, list[str]]:
        held_out = HeldOut(val=4, cal=3, test=3)
        make = {"train": rows, "test": rows[:3]}
        return deal_made(lambda _, split: make[split], 30, held_out, seed, lambda row: row[0])

    splits = dealt(1)
    expected = {"val": 6, "cal": 3, "train": 18, "test": 3}
    assert sizes(splits) == expected, "a group may exceed its split's size"
    groups = {split: {row[0] for row in members} for split, members in splits.items()}
    assert sum(map(len, groups.values())) == 10
    assert splits == dealt(1)
    assert splits != dealt(2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        (" \n---!?", 0),
        ("B", 1),
        ("(B)", 1),
        ("x = 12", 2),
        ("3.5", 2),
        ("The answer is 12.", 4),
        ("snake_case", 2),
        ("\u7b54\u6848\u662f12", 4),
        ("\u3053\u308c\u306f", 3),
        ("caf\u00e9 d\u00e9j\u00e0 vu", 3),
    ],
)
def test_count_words(text: str, words: int) -> None:
    assert count_words(text) == words


def test_trivial_responses_have_too_few_words() -> None:
    responses = [("B",), ("two words",), ("just three words",), ("A", "a longer one"), ("A", "B")]
    examples = [example("Q?", responses=texts) for texts in responses]
    assert [e.responses for e in drop_trivial(examples)] == [responses[2], responses[3]]
    assert [e.responses for e in drop_trivial(examples, 2)] == responses[1:4]
    assert list(drop_trivial(examples, 0)) == examples


C, P, W = "Correct", "Partial", "Wrong"


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ([C, C, C, C, C, C], False),
        ([P, W, C, C, C, C], False),
        ([P, W, W, C, C, C], True),
        ([W, W, W, W, W, W], True),
        ([P, W, None, C, C, C], False),
        ([None, None, None, None, None, None], False),
    ],
)
def test_three_of_six_must_disagree(labels: list[str | None], kept: bool) -> None:
    contested = keep_contested([example("Q?", C, id="a")], {"a": labels, "other": []})
    assert [e.id for e in contested] == (["a"] if kept else [])


@pytest.mark.parametrize(
    ("ids", "verdicts"),
    [("a", {"a": ["correct", *[C] * 5]}), ("aa", {"a": [C] * 6}), ("a", {}), ("a", {"a": [C] * 7})],
)
def test_verdicts_that_do_not_suit(ids: str, verdicts: dict[str, list[str]]) -> None:
    with pytest.raises(CustosError, match="'a'"):
        list(keep_contested([example("Q?", C, id=name) for name in ids], verdicts))
    with pytest.raises(CustosError, match="from 1 to 6"):
        list(keep_contested([], {}, 7))


def test_verdicts_are_scores_of_the_examples_own_task() -> None:
    row = example("Who?", "Incorrect", id="a", task="simplevqa", variant="english")
    assert list(keep_contested([row], {"a": ["Correct", "Not attempted"]}, 2, 2)) == [row]


def test_verdict_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    path.write_text(json.dumps({"a": [C, None]}))
    assert read_verdicts(path) == {"a": [C, None]}
    bad: list[object] = [[], {"a": W}, {"a": [1]}]
    for content in bad:
        path.write_text(json.dumps(content))
        with pytest.raises(CustosError, match="v.json: "):
            read_verdicts(path)


def test_the_hash_is_of_lower_case_words() -> None:
    expected = hashlib.sha256(b"what s the capital of france").hexdigest()
    assert excluded_hash("  What's the CAPITAL -- of_France?? ") == expected


def test_an_excluded_question_takes_its_near_duplicates_along(tmp_path: Path) -> None:
    path = tmp_path / "out.sha256"
    path.write_text(excluded_hash("who wrote the long story of the northern sea") + "  name\n\n")
    rows = [
        example("Who wrote the long story of the northern sea?"),
        example("who wrote the long story of the northern seas"),
        example("who painted the harbour at night"),
    ]
    assert without_excluded(rows, read_excluded(path)) == rows[2:]


@pytest.mark.parametrize(
    ("content", "place"),
    [("", "out.sha256: "), (f"{'a' * 64}\nwho wrote it\n", "row 2: "), ("A" * 64, "row 1: ")],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: str, place: str) -> None:
    path = tmp_path / "out.sha256"
    path.write_text(content)
    with pytest.raises(CustosError, match=place):
        read_excluded(path)
    with pytest.raises(CustosError, match="missing: "):
        read_excluded(tmp_path / "missing")
