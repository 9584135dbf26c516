import pytest

from data_prep.construction.charthal.rulings import settle
from judging.errors import CustosError
from tests.data_prep.construction.charthal.examples import check, question


def test_annotators_agree_correct_discard_and_differ() -> None:
    sent = [question(n) for n in range(7)]
    corrected = {"question": "How many boats?", "q_relation": "contra"}
    anna = [
        check(sent[0], "keep"),
        check(sent[1], "discard"),
        check(sent[2], "keep", **corrected),
        check(sent[3], "keep"),
        check(sent[4], "keep", acceptable_ranges="[4, 6]"),
        check(sent[5], ""),
        check(sent[6], "keep"),
    ]
    ben = [
        check(sent[0], "keep", note="fine"),
        check(sent[1], "discard", note="about nothing"),
        check(sent[2], "keep", **corrected),
        check(sent[3], "discard"),
        check(sent[4], "keep"),
        check(sent[6], ""),
    ]
    rulings = settle(sent, {"anna": anna, "ben": ben})
    assert [question.id for question in rulings.kept] == ["7_0", "7_2", "7_6"]
    assert (rulings.kept[1].question, rulings.kept[1].q_relation) == ("How many boats?", "contra")
    assert rulings.discarded == ["7_1"]
    assert rulings.unchecked == ["7_5"]
    assert rulings.disagreements == [
        {"id": "7_3", "status": {"anna": "keep", "ben": "discard"}},
        {"id": "7_4", "acceptable_ranges": {"anna": "[4, 6]", "ben": ""}},
    ]
    settled = settle(sent, {"anna": anna, "ben": ben}, final=[check(sent[3], "discard"), anna[4]])
    assert settled.discarded == ["7_1", "7_3"]
    assert settled.kept[2].ref_answer.endswith("[4, 6] are ACCEPTABLE)")
    assert settled.disagreements == []
    with pytest.raises(CustosError, match="sheet 'final': that name"):
        settle(sent, {"anna": anna, "final": ben})


def test_a_question_that_was_not_sent_out() -> None:
    with pytest.raises(CustosError, match="sheet 'anna': no question '7_3' was sent out"):
        settle([question(0)], {"anna": [check(question(3), "keep")]})
