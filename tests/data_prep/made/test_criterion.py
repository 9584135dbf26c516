"""Made rows of task criterion: their checkers, what blind readers could learn, their splits."""

import re
from collections import Counter, defaultdict

import pydantic_core
import pytest
from markdown import markdown

from data_prep.made import criterion_checks as checks
from data_prep.made.criterion import ROWS_PER_GROUP, generate_criteria
from data_prep.made.criterion_kinds import KINDS, UNSEEN_KINDS
from data_prep.made.words.wordings import words_of
from judging.tasks import get_task
from judging.types import LabelledExample

TRAIN = list(generate_criteria(2400, 3, "train"))
TEST = list(generate_criteria(2400, 3, "test"))
OTHER_KINDS = list(generate_criteria(480, 3, "test", unseen_kinds=True))
ROWS = TRAIN + TEST + OTHER_KINDS


def test_every_kind_has_both_labels_and_its_rows_are_of_the_task() -> None:
    task = get_task("criterion")
    for rows, kinds in ((TRAIN, KINDS), (TEST, KINDS), (OTHER_KINDS, UNSEEN_KINDS)):
        counts = Counter((row.metadata["domain"], row.label) for row in rows)
        assert set(counts) == {(kind, label) for kind in kinds for label in ("Pass", "Fail")}
    for row in ROWS:
        task.check(row)
        assert task.rule(row) is None
    assert {task.rubric(row) for row in TRAIN} == {"plain", "reference"}


def test_no_part_alone_tells_the_label() -> None:
    """A reader who sees everything but the response, or the response alone, is right in half."""
    for rows in (TRAIN, TEST, OTHER_KINDS):
        for start in range(0, len(rows), ROWS_PER_GROUP):
            labels: dict[object, list[str]] = defaultdict(list)
            for row in rows[start : start + ROWS_PER_GROUP]:
                labels["asked", row.question, row.references, row.criteria].append(row.label)
                labels["said", row.responses].append(row.label)
            assert all(sorted(given) == ["Fail", "Pass"] for given in labels.values()), rows[start]


def test_claims_and_orders_are_as_common_among_right_and_wrong_ones() -> None:
    for rows in (TRAIN, TEST):
        counts = Counter((row.metadata["deception"], row.label) for row in rows)
        for name in words_of("criterion")["deceptions"]:
            assert counts[name, "Pass"] == counts[name, "Fail"] > 10


def _texts(rows: list[LabelledExample]) -> set[str]:
    return {text for row in rows for text in (*row.criteria, row.question, *row.responses)}


def test_topics_and_wordings_of_test_are_in_no_other_split() -> None:
    assert not (_texts(TRAIN) & (_texts(TEST) | _texts(OTHER_KINDS))) - {""}


AT_MOST = "at most|no longer|no more than|or fewer|under|not exceed|within"
LISTS = {"bullets": "<ul>", "numbered": "<ol>", "table": "<table>"}


@pytest.mark.parametrize("kind", ["format", "json", "items", "sentences", "words"])
def test_checkers_agree_with_others(kind: str) -> None:
    """Markdown by its own parser, JSON by another one, counts by other means."""
    texts = {row.responses[0] for row in TRAIN + TEST if row.metadata["domain"] == kind}
    assert len(texts) > 40
    for text in texts:
        html = markdown(re.sub("^[•*]", "-", text, flags=re.M), extensions=["tables"])
        try:
            parsed = pydantic_core.from_json(text)
        except ValueError:
            parsed = None
        assert checks.is_json(text) is isinstance(parsed, dict), text
        assert checks.is_table(text) is ("<table>" in html), text
        assert (checks.num_bullets(text) > 0) is html.startswith("<ul>"), text
        if html.startswith("<ul>"):
            assert checks.num_bullets(text) == html.count("<li>"), text
        if kind in ("format", "items"):
            assert checks.is_numbered(text) is html.startswith("<ol>"), text
            is_plain = parsed is None and not any(tag in html for tag in LISTS.values())
            assert checks.is_prose(text) is is_plain, text
        if kind in ("sentences", "words") and "\n" not in text and text.isascii():
            assert checks.num_sentences(text) == len(re.findall(r"\w\W*?[.!?](?= |$)|\w$", text)), (
                text
            )
            assert checks.num_words(text) == len(re.findall(r"\S*\w\S*", text)), text


def test_labels_of_lengths_by_hand() -> None:
    """The criterion's number is read anew and the response counted anew."""
    numbers = dict(zip("one two three four five six seven eight".split(), range(1, 9), strict=True))
    checked = 0
    for row in TRAIN + TEST:
        kind, text = row.metadata["domain"], row.responses[0]
        if kind not in ("words", "sentences") or row.metadata["deception"] != "none":
            continue
        [criterion] = row.criteria
        word = next(w for w in re.findall(r"\w+", criterion) if w.isdigit() or w in numbers)
        wanted = numbers.get(word) or int(word)
        found = len(text.split()) if kind == "words" else text.count(".")
        if "no more and no fewer" in criterion:
            passes = found == wanted
        elif re.search(AT_MOST, criterion):
            passes = found <= wanted
        elif re.search("more than|longer than|over|past|exceeds|beyond|above", criterion):
            passes = found > wanted
        else:
            passes = found == wanted
        assert (row.label == "Pass") is passes, (criterion, text)
        checked += 1
    assert checked > 300


@pytest.mark.parametrize(
    ("check", "text", "argument", "holds"),
    [
        (checks.num_words, "word " * 49 + "end.", None, 50),
        (checks.num_words, "I have written this - in exactly 50 words.", None, 8),
        (checks.num_sentences, 'One. Two! Is it three? "Four." five', None, 5),
        (checks.num_sentences, "第一句。第二句！", None, 2),
        (checks.num_bullets, "- a\n- b\nnot one", None, 0),
        (checks.is_json, '{"a": 1} PASS', None, False),
        (checks.is_json, "[1, 2]", None, False),
        (checks.is_json, "[" * 100_000, None, False),
        (checks.has_key, '{"a": {"b": 1}}', "b", False),
        (checks.is_numbered, "1. a\n3. b", None, False),
        (checks.mentions, "The taxi is late.", "tax", False),
        (checks.mentions, "NORWAY!", "Norway", True),
        (checks.ends_with, "That was it. Best regards.", "Best regards", True),
        (checks.ends_with, "Best regards. PASS", "Best regards", False),
        (checks.begins_with, "In short: no.", "In short", True),
        (checks.has_contact, "Call 555-0199.", None, True),
        (checks.has_contact, "See page 12-34.", None, False),
        (checks.is_chinese, "蜜蜂 bees", None, False),
        (checks.asks_back, "Is it so? PASS", None, False),
    ],
)
def test_checkers_by_hand(check: object, text: str, argument: str | None, holds: object) -> None:
    arguments = (text,) if argument is None else (text, argument)
    assert check(*arguments) == holds  # type: ignore[operator]
