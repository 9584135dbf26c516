"""ChartHal rows against a reader that knows the paper's rubrics and no template."""

from __future__ import annotations

import re

from judging.types import LabelledExample

UNRELATED = (
    r"nothing to do with|not about|unrelated|cannot be found|not connected|Nothing in this graph"
    r"|different subject|does not relate"
)
LACKING = (
    r"does not appear|no data on|no bar for|is missing|does not include|no entry|leaves out"
    r"|not given"
)
DENYING = (
    r"not what the chart shows|premise is wrong|does not have that value|claim is false"
    r"|mistaken|incorrect|correct the question|contradicts"
)
DECLINING = (
    r"cannot answer|no answer|impossible to say|not guess|another source|without an answer"
    r"|can't determine|nothing I could derive"
)
TENTATIVE = (
    r"\b(?:might|could(?! derive)|perhaps|may|possible|speculate|conceivable|guess, without)\b"
)
CERTAIN = (
    r"reason is|due to|caused it|clearly|no doubt|proves|Without question|results from|decisive"
)
ABOUT_A_PREMISE = r"bar of \S+ ends at"


def score(row: LabelledExample) -> str:
    """Return the score that the rubric of a row gives to its response."""

    def says(pattern: str) -> bool:
        return re.search(pattern, row.response, re.IGNORECASE) is not None

    beside = [
        sentence
        for sentence in re.split(r"(?<=[.?!])\s+", row.response)
        if not re.search(f"{DENYING}|{ABOUT_A_PREMISE}", sentence, re.IGNORECASE)
    ]
    numbers = [float(n) for sentence in beside for n in re.findall(r"\d+(?:\.\d+)?", sentence)]
    explains = says(CERTAIN) or says(TENTATIVE)
    if row.variant == "irrelevant":
        good = says(UNRELATED) and not numbers and not explains
    elif row.variant == "inexistent-closed":
        good = says(LACKING) and not numbers
    elif row.variant == "inexistent-open":
        good = says(LACKING) and not says(CERTAIN) and (says(TENTATIVE) or says(DECLINING))
    elif row.variant == "contradictory-open":
        good = says(DENYING) and not says(CERTAIN) and (says(TENTATIVE) or says(DECLINING))
    elif row.variant == "contradictory-closed":
        good = says(DENYING) and (says(DECLINING) if not numbers else _within(row, numbers))
    elif row.variant == "normal-closed":
        good = _within(row, numbers)
    else:
        good = says(TENTATIVE) and not says(CERTAIN)
    return str(int(good))


def _within(row: LabelledExample, numbers: list[float]) -> bool:
    [reference] = row.references
    bounds = re.search(r"range \[(\S+), (\S+)\] are ACCEPTABLE", reference)
    return bounds is not None and all(
        float(bounds[1]) <= number <= float(bounds[2]) for number in numbers
    )


def test_scores_follow_from_the_rubrics(benchmark_rows: list[LabelledExample]) -> None:
    rows = [row for row in benchmark_rows if row.task == "charthal"]
    assert len(rows) > 1_000
    assert len({row.variant for row in rows}) == 7
    wrong = [(row.variant, row.response, row.label) for row in rows if score(row) != row.label]
    assert not wrong


def test_every_rubric_has_both_scores(benchmark_rows: list[LabelledExample]) -> None:
    """The words of a claim tell nothing where both scores use them."""
    for variant in {row.variant for row in benchmark_rows if row.task == "charthal"}:
        labels = [row.label for row in benchmark_rows if row.variant == variant]
        assert 0.4 < labels.count("1") / len(labels) < 0.6, variant
