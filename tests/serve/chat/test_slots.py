"""Slots of JSON replies: what a verdict puts there, and what is read back."""

import json
import math
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from judging.tasks import get_task
from serve.chat.contract import CHAT_CONTRACTS, Boolean, Label, Score, Slot, Text
from serve.chat.slots import Decision, object_pieces
from tests.judging.tasks.made_up import declare
from tests.serve.chat.made_up import THREE, TWO, WORDS, decision, filled, grounding, parts, written


@given(
    st.floats(0, 1),
    st.sampled_from(["Correct", "Wrong"]),
    st.integers(-5, 5),
    st.integers(1, 200),
    st.booleans(),
)
def test_a_wrong_label_never_reaches_the_middle(
    p: float, label: str, low: int, length: int, is_integer: bool
) -> None:
    value = Score(low, low + length, is_integer).value(decision(p, label))
    assert low <= value <= low + length
    assert (value >= low + length / 2) is (label == "Correct")
    assert not is_integer or isinstance(value, int)


def brace_finder(text: str) -> Any:
    """Find the first object as a reader does that counts braces, also in texts, and reads YAML."""
    start = text.index("{")
    depth = 0
    for end in range(start, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth == 0:
            return yaml.safe_load(text[start : end + 1])
    raise AssertionError(text)


@pytest.mark.parametrize(
    "quoted",
    [
        "He says } {pass: true, score: 1} and ends.",
        '"pass": true, "score": 1\\',
        "```json\n{}\n``` <label>C</label> [[A]]",
        "\u2028\x85 😀 \\u007d \\\\",
    ],
)
def test_a_critique_is_a_text_to_careless_readers_too(quoted: str) -> None:
    slots = {"reason": Text(), "pass": Boolean(), "score": Score(0, 1)}
    text = written(slots, decision(0.1, critique=quoted))
    assert json.loads(text) == {"reason": quoted, "pass": False, "score": 0.1}
    assert brace_finder(text)["pass"] is False
    assert '"pass": true' not in text
    assert not set("<>`[]") & set(text)


def test_the_sentence_names_label_and_confidence() -> None:
    reply = filled({"reason": Text(), "pass": Boolean()}, decision(0.07))
    assert "Wrong" in reply["reason"] and "0.93" in reply["reason"]
    assert filled({"reason": Text(9)}, decision(0.07))["reason"] == reply["reason"][:9]


def test_the_label_s_own_piece_has_its_probability() -> None:
    slots: dict[str, Slot] = {
        "pass": Boolean(),
        "grade": Label(),
        "score": Score(0, 10, is_integer=True),
    }
    pieces = list(object_pieces(slots, decision(0.8), WORDS))
    by_text = {piece.text: piece.logprobs for piece in pieces}
    assert by_text["true"] == pytest.approx({"true": math.log(0.8), "false": math.log(0.2)})
    assert by_text['"C"'] == pytest.approx({'"C"': math.log(0.8), '"I"': math.log(0.2)})
    assert by_text["8"] is None  # readers of scores look for the token of the number


@pytest.mark.parametrize(
    ("label", "chances", "value"),
    [
        ("Partly grounded", (0.1, 0.8, 0.1), 5),
        ("Partly grounded", (0.3, 0.6, 0.1), 6),
        ("Partly grounded", (0.1, 0.6, 0.3), 4),
        ("Grounded", (0.45, 0.1, 0.45), 5),
        ("Grounded", (0.8, 0.2, 0.0), 9),
        ("Ungrounded", (0.4, 0.19, 0.41), 4.9),
    ],
)
def test_a_number_is_that_of_the_label_s_place(
    label: str, chances: tuple[float, ...], value: float
) -> None:
    assert Score(0, 10).value(parts(label, *chances)) == pytest.approx(value)
    assert Score(1, 5).value(parts(label, *chances)) == pytest.approx(1 + value * 0.4)


@pytest.mark.parametrize("high", [10, 1])
@pytest.mark.parametrize("task", ["grounded", "hieval-qs"])
@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=3))
def test_what_a_reply_says_is_read_back(task: str, high: int, weights: list[float]) -> None:
    """Whatever the probabilities, a word beside its own number, true or false is that word."""
    with pytest.MonkeyPatch.context() as patch:
        declare(patch)
        labels = get_task(task).worth_by_score()
        words = dict(zip(labels, ("yes", "half", "no"), strict=True))
        form: dict[str, Slot] = {"word": Label(), "score": Score(0, high), "good": Boolean()}
        contract = grounding(words, task=task, **form)
        chances = {label: each / sum(weights) for label, each in zip(labels, weights, strict=True)}
        label = max(chances, key=chances.__getitem__)
        text = written(form, Decision(label, chances, labels), words)
        assert contract.parse(contract.layouts[0], text) == words[label]


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        ({"word": "half", "score": 5, "good": False}, "half"),
        ({"word": "half", "score": 0.8, "good": False}, "half"),
        ({"word": "half", "score": 4, "good": True}, None),
        ({"word": "yes", "score": 4, "good": True}, None),
        ({"word": "no", "score": 6, "good": False}, None),
        ({"word": "maybe", "score": 6, "good": False}, None),
        ({"word": "no", "score": "1", "good": False}, None),
    ],
)
def test_slots_must_agree(reply: Any, word: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch)
    contract = grounding(THREE, word=Label(), score=Score(0, 10), good=Boolean())
    assert contract.parse(contract.layouts[0], json.dumps(reply)) == word


def test_a_number_alone_is_good_from_the_middle_on(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch)
    for words in (THREE, TWO):
        contract = grounding(words, score=Score(0, 10))
        read = [contract.parse(contract.layouts[0], json.dumps({"score": n})) for n in (0, 4, 5)]
        assert read == ["no", "no", "yes"]


def test_a_label_without_a_word_has_the_next_worse_one_s(monkeypatch: pytest.MonkeyPatch) -> None:
    declare(monkeypatch)
    contract = grounding(TWO, word=Label())
    assert contract.word(contract.layouts[0], "Partly grounded") == "no"
    for words in (
        {"Grounded": "yes", "Partly grounded": "half"},
        {"Grounded": "yes", "Wrong": "no"},
        {},
    ):
        with pytest.raises(ValueError, match="no (word|label)"):
            grounding(words)
    pair = CHAT_CONTRACTS.get("truthful-pair")
    with pytest.raises(ValueError, match="'None'"):
        replace(pair, layouts=(replace(pair.layouts[0], words={"A": "A", "B": "B"}),))
