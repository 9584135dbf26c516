import pytest

from data_prep.errors import UnusableText
from data_prep.sources.conversations import Judgement, parse_judgement, write_judgement
from judging.errors import CustosError
from judging.types import LabelledExample

JUDGED = (
    "<critique>A counts three boats; there are two.</critique>\n"
    "<label>B</label>\n<confidence>0.85</confidence>"
)


def test_a_judgement_is_read_from_its_last_tags() -> None:
    thought = "<think>maybe <critique>x</critique><label>A</label></think>" + JUDGED
    assert parse_judgement(thought) == Judgement("A counts three boats; there are two.", "B", 0.85)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "unparsable"),
        ("B", "unparsable"),
        (JUDGED.replace("0.85", "85%"), "unparsable"),
        (JUDGED.replace("0.85", ""), "unparsable"),
        ("</critique>" + JUDGED.partition("</critique>")[2], "unparsable"),
        (JUDGED.replace("0.85", "1.2"), "confidence out of range"),
        (JUDGED.replace("0.85", "nan"), "confidence out of range"),
        ("<critique> </critique><label>A</label><confidence>1</confidence>", "empty critique"),
    ],
)
def test_texts_that_are_no_judgement(text: str, reason: str) -> None:
    with pytest.raises(UnusableText) as caught:
        parse_judgement(text)
    assert caught.value.reason == reason


def test_there_and_back() -> None:
    example = LabelledExample(
        id="7",
        task="truthful-pair",
        question="How many boats?",
        responses=("Three.", "Two."),
        label="B",
        critique="A counts three boats; there are two.",
        confidence=0.85,
    )
    assert write_judgement(example) == JUDGED
    with pytest.raises(CustosError, match="row '7': needs a critique and a confidence"):
        write_judgement(example.model_copy(update={"confidence": None}))
