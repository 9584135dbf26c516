"""Made answers to benchmark questions against readers that know the rubrics and no template."""

import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

import pytest

from judging.tasks import get_task
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


@pytest.mark.parametrize("variant", ["number", "choice", "ranking"])
def test_labels_are_those_of_the_rules_where_they_decide(
    benchmark_rows: list[LabelledExample], variant: str
) -> None:
    rows = [r for r in benchmark_rows if r.task == "chartom-fact" and r.variant == variant]
    decided = [
        (row, ruling.label == "Correct")
        for row in rows
        if (ruling := get_task("chartom-fact").rule_if_certain(row)) is not None
    ]
    assert len(decided) > 0.2 * len(rows)
    assert {rule for _, rule in decided} == {True, False}
    wrong = [
        (row.question, row.references, row.response, row.label)
        for row, rule in decided
        if ("Correct" if rule else "Incorrect") != row.label
    ]
    assert not wrong


TRUTH = "\N{BLACK STAR}"
BEFORE_REJECTED = (
    "not |thought of |people say |take it for |rather than |going to write |cannot be |rule out "
    "|exclude |不是|以为是|人说是|并非|像|不可能是|排除的只有|不会是"
)
AFTER_REJECTED = r"\? No| it is not"
ALTERNATIVES = r" or |guesses are|Possibly|Could be|/|或者|要么|中的一个|可能是.*也可能是"
NO_ATTEMPT = (
    r"\bknow\b|cannot tell|context|blurred|been written|look it up|\bidea\b|unable|depends"
    "|more I cannot say|rule out|exclude|escapes|beyond my|enough detail|caption|its history"
    "|it is not|unclear|the rest"
    "|不知道|只知道|看不出|背景|模糊|有意思|资料|无法|说不上|不清楚|知识范围|说明|排除|不会是|认不出|不作答"
)
ROUGH = "about|over|roughly|around|more than|some |大约|超过|左右|上下|不止"
TOWN = rf"{TRUTH}|[A-Z]\w+(?: Bay| Hills)?|[\u4e00-\u9fff]{{2}}[镇城港村湾]"
JOINTS = r", and | and |, |; | as well as | / |、|和|，|以及|与|；"


def conclude_on_name(row: LabelledExample) -> str:
    """Return the conclusion on an answer about one name or year."""
    [truth] = row.references
    given, _, surname = truth.partition(" ")
    text = row.response
    for spelling in (truth, f"{surname}, {given}" if surname else truth):
        text = re.sub(re.escape(spelling), TRUTH, text, flags=re.IGNORECASE)
    rejected = re.search(f"(?:{BEFORE_REJECTED}){TRUTH}|{TRUTH}(?:{AFTER_REJECTED})", text, re.I)
    if TRUTH in text and not rejected and not re.search(ALTERNATIVES, text):
        return "Correct"
    if TRUTH not in text and re.search(NO_ATTEMPT, text, re.IGNORECASE):
        return "Not attempted"
    return "Incorrect"


def conclude_on_number(row: LabelledExample) -> str:
    """Return the conclusion on an answer about a number, by the rule of cutting and rounding."""
    truth = Decimal(row.references[0])
    text = re.sub(
        rf"(?:{BEFORE_REJECTED})[\d.]+\d|[\d.]+\d(?:{AFTER_REJECTED})",
        "",
        row.response,
        flags=re.IGNORECASE,
    )
    numbers = [Decimal(number) for number in re.findall(r"\d+(?:\.\d+)?", text)]
    if not numbers or re.search(ROUGH, text):
        return "Not attempted"
    [number] = numbers
    unit = Decimal(1).scaleb(int(number.as_tuple().exponent))
    cut, rounded = (truth.quantize(unit, way) for way in (ROUND_DOWN, ROUND_HALF_UP))
    return "Correct" if number in (cut, rounded) else "Incorrect"


def conclude_on_list(row: LabelledExample) -> str:
    """Return the conclusion on an answer that lists names."""
    elements = re.split(JOINTS, row.references[0])
    present = [element for element in elements if element in row.response]
    if re.search(NO_ATTEMPT, row.response):
        is_wrong = not present and re.search(
            "one of them|recogni|can name|One is|其中一个是|认得|说出|有一个是|tell what else",
            row.response,
        )
        return "Incorrect" if is_wrong else "Not attempted"
    listed = row.response
    for element in present:
        listed = listed.replace(element, TRUTH)
    runs = re.findall(rf"(?:{TOWN})(?:(?:{JOINTS})(?:{TOWN}))*", listed)
    [run] = [run for run in runs if TRUTH in run]
    num_listed = len(re.findall(TOWN, run))
    return "Correct" if len(present) == len(elements) == num_listed else "Incorrect"


def test_conclusions_follow_from_what_is_claimed(benchmark_rows: list[LabelledExample]) -> None:
    readers = {"number": conclude_on_number, "names": conclude_on_list}
    rows = [row for row in benchmark_rows if row.task == "simplevqa"]
    assert {row.variant for row in rows} == {"english", "chinese"}
    wrong = []
    for row in rows:
        reader = readers.get(_type_of_truth(row), conclude_on_name)
        if reader(row) != row.label:
            wrong.append((row.question, row.references, row.response, row.label, reader(row)))
    assert not wrong


def _type_of_truth(row: LabelledExample) -> str:
    if re.search("metres|kilometres|多少米|多少公里|（米）", row.question):
        return "number"
    return "names" if re.search("[Tt]owns |哪些城镇|经过的城镇", row.question) else "name"
