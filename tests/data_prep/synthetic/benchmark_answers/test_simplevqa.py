"""SimpleVQA rows against a reader that finds out what a text claims and rejects."""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal

from judging.types import LabelledExample

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


def test_words_of_a_claim_do_not_tell_its_conclusion(
    benchmark_rows: list[LabelledExample],
) -> None:
    for start in ("It is ", "I am not certain", "应", "My guesses", "我不太确定"):
        labels = [
            row.label
            for row in benchmark_rows
            if row.task == "simplevqa" and row.response.startswith(start)
        ]
        if start != "My guesses":
            assert 0.3 < labels.count("Correct") / len(labels) < 0.7, start
