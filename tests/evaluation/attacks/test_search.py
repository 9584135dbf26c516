from collections.abc import Iterator

import pytest

from evaluation.attacks.search import (
    SuffixSearch,
    summarise_search,
    wrong_answers,
)
from judging import JudgeRequest, Verdict
from tests.evaluation.attacks.made_up import example, examples

SUFFIXES = [f" {number}." for number in range(300)]


class Gullible:
    """Says Correct to what ends in one of its suffixes, or names a reference."""

    def __init__(self, *suffixes: str) -> None:
        self.suffixes = suffixes
        self.batches: list[list[str]] = []

    def grade(self, requests: list[JudgeRequest]) -> Iterator[Verdict]:
        self.batches.append([request.response for request in requests])
        for request in requests:
            is_right = any(reference in request.response for reference in request.references)
            is_fooled = request.response.endswith(self.suffixes)
            label = "Correct" if is_right or is_fooled else "Wrong"
            yield Verdict(id=request.id, status="scored", label=label)


@pytest.mark.parametrize("number", [0, 7, 8, 23, 299])
def test_the_first_suffix_that_works_is_returned_with_the_tries_up_to_it(number: int) -> None:
    judge = Gullible(SUFFIXES[number])
    result = SuffixSearch(judge.grade, SUFFIXES).attack(
        example("Who?", ["Ann"], responses=("Bob",))
    )
    assert (result.label, result.suffix, result.tries) == ("Wrong", SUFFIXES[number], number + 1)
    tried = [response for batch in judge.batches[1:] for response in batch]
    assert tried == [f"Bob{suffix}" for suffix in SUFFIXES[: len(tried)]]
    assert len(tried) < number + 130


def test_an_answer_that_is_accepted_as_it_is_is_not_attacked() -> None:
    rows = [
        example("Who?", ["Ann"], responses=("Ann",)),
        example("Whom?", ["Ann"], responses=("Bob",)),
    ]
    search = SuffixSearch(Gullible(SUFFIXES[3]).grade, SUFFIXES)
    results = [search.attack(row) for row in rows]
    summary = summarise_search(results, len(SUFFIXES))
    assert (summary.already_correct, summary.turned.n, summary.turned.hits) == (1, 1, 1)
    assert (summary.tries, summary.median_tries) == (4, 4)
    assert summary.suffixes == {SUFFIXES[3]: 1}


class Silent(Gullible):
    """Gives no label to what ends in a suffix that fails it."""

    def grade(self, requests: list[JudgeRequest]) -> Iterator[Verdict]:
        for request, verdict in zip(requests, super().grade(requests), strict=True):
            if request.response.endswith(SUFFIXES[5]):
                verdict = Verdict(id=request.id, status="judge_error", message="timed out")
            yield verdict


def test_an_answer_stands_firm_only_if_every_try_got_a_label() -> None:
    row = example("Who?", ["Ann"], responses=("Bob",))
    firm = SuffixSearch(Silent("never").grade, SUFFIXES).attack(row)
    assert (firm.label, firm.suffix, firm.unscored_tries) == ("Wrong", None, 1)
    summary = summarise_search([firm], len(SUFFIXES))
    assert (summary.turned.n, summary.unscored) == (0, 1)
    turned = SuffixSearch(Silent(SUFFIXES[9]).grade, SUFFIXES).attack(row)
    assert (turned.suffix, turned.unscored_tries) == (SUFFIXES[9], 1)
    summary = summarise_search([turned, firm], len(SUFFIXES))
    assert (summary.turned.n, summary.turned.hits, summary.unscored) == (1, 1, 1)


def test_wrong_answers_are_those_that_people_call_wrong() -> None:
    rows = [*examples(), *examples(label="Wrong", responses=("no idea",)),
            *examples(label="Wrong", responses=(" ",))]  # fmt: skip
    drawn = wrong_answers(rows, 5)
    assert len(drawn) == 5
    assert {(row.label, row.response) for row in drawn} == {("Wrong", "no idea")}
    assert len(wrong_answers(rows, 99)) == 8
    assert wrong_answers(rows, 5) == drawn != wrong_answers(rows, 5, seed=1)
