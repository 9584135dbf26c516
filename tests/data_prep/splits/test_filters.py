import pytest

from data_prep.splits.filters import count_words, drop_trivial, keep_contested, parse_verdicts
from judging.errors import CustosError
from tests.data_prep.examples import example


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


def test_the_score_is_what_models_disagree_on() -> None:
    typed = example("Q?", "Wrong; Reasoning Error", id="a", task="hieval-ea")
    assert not list(keep_contested([typed], {"a": [W, W, W, W, W, "Wrong; Other"]}))
    assert list(keep_contested([typed], {"a": [P, C, C, W, W, W]})) == [typed]


@pytest.mark.parametrize("verdict", ["correct", "Right", ""])
def test_verdicts_of_no_score(verdict: str) -> None:
    with pytest.raises(CustosError, match=f"example 'a': verdict '{verdict}' is not one of"):
        list(keep_contested([example("Q?", C, id="a")], {"a": [verdict, *[C] * 5]}))


def test_an_id_that_occurs_twice() -> None:
    twice = [example("Q?", id="a"), example("R?", id="a")]
    with pytest.raises(CustosError, match="id 'a' occurs twice"):
        list(keep_contested(twice, {"a": [C] * 6}))


def test_other_numbers_of_models() -> None:
    examples = [example("Q?", W, id="a"), example("Q?", C, id="b")]
    verdicts = {"a": [C, W], "b": [C, C]}
    assert [e.id for e in keep_contested(examples, verdicts, 1, 2)] == ["a"]


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [({}, "'a' has 0 model verdicts, expected 6"), ({"a": [C] * 7}, "'a' has 7 model verdicts")],
)
def test_every_example_needs_its_verdicts(verdicts: dict[str, list[str]], message: str) -> None:
    with pytest.raises(CustosError, match=message):
        list(keep_contested([example("Q?", id="a")], verdicts))


@pytest.mark.parametrize("min_disagreeing", [0, 7])
def test_impossible_number_of_disagreeing_models(min_disagreeing: int) -> None:
    with pytest.raises(CustosError, match=f"{min_disagreeing} disagreeing models: .* 1 to 6"):
        list(keep_contested([], {}, min_disagreeing))


def test_verdict_files_are_checked() -> None:
    assert parse_verdicts({"a": [C, None]}, "v.json") == {"a": [C, None]}
    with pytest.raises(CustosError, match="v.json: expected an object from id to labels, got list"):
        parse_verdicts([], "v.json")
    with pytest.raises(
        CustosError, match="v.json: entry 'a': expected a list of labels, got 'Wrong'"
    ):
        parse_verdicts({"a": W}, "v.json")
    with pytest.raises(CustosError, match="entry 'a'"):
        parse_verdicts({"a": [1]}, "v.json")
