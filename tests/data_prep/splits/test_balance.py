"""Balanced sampling and the test of hard and new cases."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from cli.main import app
from data_prep.construction.critiques import critique_item
from data_prep.construction.forms.base import Value
from data_prep.construction.forms.truthful import TruthfulPair
from data_prep.splits.splits import (
    PUBLISHED_TEST,
    HeldOut,
    balanced_sample,
    balanced_splits,
    class_of,
    hard_and_new_test,
    in_both_orders,
    item_of,
)
from evaluation.report.markdown import TABLE_5
from judging.errors import CustosError
from judging.files.records import read_records, write_records
from judging.types import LabelledExample

TYPES = ("Reasoning Error", "Overthinking", "Other")


def _examples(counts: dict[str, int]) -> list[LabelledExample]:
    return [
        LabelledExample(
            id=f"{label}-{number}",
            task="hieval-ea",
            question=f"{Random(f'{label}{number}').getrandbits(80):x} {number}?",
            references=("1",),
            responses=(f"{number}",),
            label=label,
            error_type=label.partition("; ")[2] or None,
        )
        for label, count in counts.items()
        for number in range(count)
    ]


counts = st.fixed_dictionaries(
    {"Correct": st.integers(1, 12), **{f"Wrong; {name}": st.integers(1, 12) for name in TYPES},
     "Partial; Other": st.integers(0, 5)}
)  # fmt: skip


@settings(max_examples=40, deadline=None)
@given(counts, st.one_of(st.none(), st.integers(1, 15)), st.integers(0, 9))
def test_every_class_gets_as_many(sizes: dict[str, int], most: int | None, seed: int) -> None:
    examples = _examples(sizes)
    have = Counter(map(class_of, examples))
    sample = balanced_sample(examples, most, seed)
    limit = min(n for name, n in have.items() if name != "Correct") if most is None else most
    assert Counter(map(class_of, sample)) == {name: min(n, limit) for name, n in have.items()}
    assert len({row.id for row in sample}) == len(sample)
    assert balanced_sample(examples[::-1], most, seed) == sample


def test_correct_rows_are_a_sixth_class_and_make_no_other_smaller() -> None:
    errors = {f"Wrong; {name}": 10 for name in PUBLISHED_TEST}
    sample = Counter(map(class_of, balanced_sample(_examples({**errors, "Correct": 30}))))
    assert sample == {**dict.fromkeys(PUBLISHED_TEST, 10), "Correct": 10}
    few = Counter(map(class_of, balanced_sample(_examples({**errors, "Correct": 2}))))
    assert few == {**dict.fromkeys(PUBLISHED_TEST, 10), "Correct": 2}


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(2, 30), st.integers(0, 9))
def test_the_test_keeps_its_proportion(old: int, new: int, wanted: int, seed: int) -> None:
    examples = _examples({"Correct": 4, "Wrong; Other": old + new})
    hard_rows = [*examples[4 : 4 + old], examples[0]]
    hard = {item_of(row) for row in hard_rows}
    try:
        test, rest = hard_and_new_test(examples, hard_rows, [], wanted, seed)
    except CustosError:
        assert min(old, new) < 2 or wanted < 2
        return
    num_hard = sum(item_of(row) in hard for row in test)
    assert len(test) <= wanted
    assert num_hard == round(0.6 * len(test))
    # One more item would not fit: asked for no more, or one of the two sorts has run out.
    assert len(test) in (wanted, int(old / 0.6), int(new / (1 - 0.6)))
    assert all(row.error_type for row in test)
    assert not {item_of(row) for row in rest} & (hard | {item_of(row) for row in test})
    assert hard_and_new_test(examples[::-1], hard_rows, [], wanted, seed)[0] == test


def test_what_an_earlier_stage_has_seen_is_neither_new_nor_held_out() -> None:
    examples = _examples({"Wrong; Other": 60})
    hard, seen, others = examples[:10], examples[10:40], examples[40:]
    again = [
        row.model_copy(update={"id": f"again-{row.id}", "responses": ("another",)})
        for row in (*hard[:3], *seen[:3], *others[:3])
    ]
    test, rest = hard_and_new_test([*examples, *again], hard, seen, 10)
    asked = {row.question for row in test}
    assert len(test) == 10
    assert asked.isdisjoint(row.question for row in seen)
    assert {row.question for row in rest}.isdisjoint({row.question for row in hard} | asked)
    splits = balanced_splits(rest, test, HeldOut(val=4, cal=3), seen)
    assert {row.question for row in seen} <= {row.question for row in splits["train"]}
    held_out = [row.question for split in ("val", "cal") for row in splits[split]]
    assert len(held_out) == 7
    assert set(held_out) <= {row.question for row in others} - asked
    with pytest.raises(CustosError, match="'Other' whose questions no earlier stage has seen"):
        balanced_splits(rest, test, HeldOut(val=20, cal=3), seen)
    only_seen = balanced_splits(seen, test, HeldOut(val=0, cal=0), seen)
    assert len(only_seen["train"]) == 30


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 12), st.integers(0, 12), st.integers(1, 4), st.integers(0, 9))
def test_splits_beside_the_test_are_balanced(
    val: int, cal: int, per_question: int, seed: int
) -> None:
    """Unequal classes, several rows about one question, and few Correct rows."""
    sizes = {
        "Correct": 8,
        "Wrong; Reasoning Error": 90,
        "Wrong; Other": 60,
        "Partial; Overthinking": 30,
    }
    rows = _examples(sizes)
    rows = [
        row.model_copy(update={"group": f"g{number % (len(rows) // per_question)}"})
        for number, row in enumerate(rows)
    ]
    splits = balanced_splits(rows, [], HeldOut(val=val, cal=cal), (), 5, seed)
    asked = [{row.group for row in rows} for split, rows in splits.items() if split != "test"]
    assert sum(map(len, asked)) == len(set().union(*asked)), "no question is in two splits"
    for drawn, size in ((splits["val"], val), (splits["cal"], cal)):
        counts = Counter(map(class_of, drawn))
        assert counts.total() == size
        errors = [counts[name] for name in TYPES]
        assert max(errors) - min(errors) <= 1
        assert counts["Correct"] <= max(errors)
    assert Counter(map(class_of, splits["train"]))["Other"] == 5
    assert balanced_splits(rows[::-1], [], HeldOut(val=val, cal=cal), (), 5, seed) == splits


def test_the_papers_test_gives_its_percentages() -> None:
    """Table 5 of HiEval: every published figure is a count of right ones among so many."""
    sizes = PUBLISHED_TEST.values()
    for *by_type, overall in TABLE_5.values():
        if overall == 41.77:  # over the replies that could be read: other denominators
            continue
        counts = [round(share * n / 100) for share, n in zip(by_type, sizes, strict=True)]
        again = [round(100 * count / n, 2) for count, n in zip(counts, sizes, strict=True)]
        assert again == by_type
        assert sum(counts) / 10 == overall


def test_the_verb_takes_the_published_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a small stand-in for the sizes, which are Table 5's (tested above)."""
    sizes = {"Other": 10, "Overthinking": 5}
    monkeypatch.setattr("cli.prep.tables.PUBLISHED_TEST", sizes)
    examples = _examples({"Wrong; Other": 60, "Wrong; Overthinking": 60})
    write_records(tmp_path / "ea.jsonl", examples)
    write_records(tmp_path / "qs.jsonl", examples[::2])
    command = ["prep", "error-types", "--source", tmp_path / "ea.jsonl", "--out", tmp_path / "out"]
    more = ["--hard", tmp_path / "qs.jsonl", "--published-test", "--val", 0, "--cal", 0]
    result = CliRunner().invoke(app, [str(part) for part in (*command, *more)])
    assert result.exit_code == 0, result.output
    test = [row for _, row in read_records(tmp_path / "out" / "test.jsonl", LabelledExample)]
    assert Counter(map(class_of, test)) == sizes


def test_what_people_said_of_a_response_follows_it() -> None:
    row = {
        "id": "p",
        "question": "Which river?",
        "responses": ["green", "brown"],
        "metadata": {"answerers": ["m1", "m2"], "item": "7"},
    }
    said: dict[str, Value] = {
        "faults_b": ("speculative or fictional",),
        "score_a": "9",
        "score_b": "2",
        "better": "A",
        "rationale": "Response B invents a river, and Response A does not.",
    }
    pair = LabelledExample.model_validate(TruthfulPair().settled(row, {"ann": said}))
    people = {"anna": "A", "ben": "None", "carla": "B"}
    pair = pair.model_copy(update={"annotator_labels": people})
    given, swapped = in_both_orders([pair])
    assert given == pair
    assert swapped.annotator_labels == {"anna": "B", "ben": "None", "carla": "A"}
    assert (swapped.label, swapped.responses) == ("B", ("brown", "green"))
    assert swapped.tags == ("A: speculative or fictional",)
    assert swapped.metadata == {
        "answerers": ["m2", "m1"],
        "item": "7",
        "rationale": "Response A invents a river, and Response B does not.",
        "faults": {"A": ["speculative or fictional"], "B": []},
        "scores": {"A": 2, "B": 9},
        "quality": {"A": "exclude", "B": "keep"},
    }
    told = critique_item(swapped, show_reasons=True).messages[1].text
    assert "Faults people marked in response A: speculative or fictional" in told
    assert "Score people gave response A: 2 of 10" in told
    back = in_both_orders([swapped])[1]
    assert (back.tags, back.metadata) == (pair.tags, pair.metadata)
