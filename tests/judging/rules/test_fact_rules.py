"""Numbers, shares, options, orders and whole words that answers hold."""

import math
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judging import JudgeRequest
from judging.rules.fact_rules import choice_of, number_is_right, ranking_of
from judging.rules.quantities import (
    final_quantity,
    find_quantities,
    is_near_any,
    parse_fraction,
)
from judging.rules.whole_words import holds, normalise
from judging.tasks import get_task

TREND = ("It has increased.", "It has decreased.", "It stayed the same.")
COUNTRIES = ("Tomainia", "Bacteria")
FIRMS = ("A Corp", "Beta", "Gamma Foods")


@pytest.mark.parametrize(
    ("response", "index"),
    [
        ("2", 1),
        ("(2)", 1),
        ("B", 1),
        ("Option 3", 2),
        ("**2. It has decreased**", 1),
        ("It has decreased.", 1),
        ("From 2000 to 2012 it has increased a lot.", 0),
        ("The answer is 3.", 2),
        ("The answer is a decrease", None),
        ("1. It has decreased.", None),
        ("It has increased, then it has decreased.", None),
        ("It has not increased at all; no: it stayed flat", None),
        ("4", None),
        ("2018", None),
        ("I cannot tell", None),
        ("İ", None),
        ("İ. ne", None),
        ("", None),
    ],
)
def test_options(response: str, index: int | None) -> None:
    assert choice_of(response, TREND) == index


def test_a_denied_option_and_a_doubtful_number_are_left_to_the_judge() -> None:
    assert choice_of("Not Tomainia.", COUNTRIES) is None
    assert choice_of("Bacteria, not Tomainia", COUNTRIES) is None
    assert choice_of("Not sure, but 2", COUNTRIES) is None
    assert choice_of("Bacteria", COUNTRIES) == 1
    for words in ("Rule out", "The opposite of", "Far from", "I exclude", "It is hardly"):
        assert choice_of(f"{words} Bacteria", COUNTRIES) is None
    for word in ("Non-Bacteria", "a Bacteria-like country", "Anti-Bacteria"):
        assert choice_of(word, COUNTRIES) is None
    # An option within a longer one does not count; a number is a place in the list, or a text.
    years = ("2018", "2022", "2018 and 2022 were the same")
    assert (choice_of(years[2], years), choice_of("2022", years)) == (2, 1)
    signed = ("+5%", "-5%")
    assert [choice_of(text, signed) for text in ("-5%.", "+5%", "(5%)", "5%")] == [1, 0, None, None]
    assert [choice_of(f"It was {text}", signed) for text in ("-5%", "+5%")] == [1, 0]
    assert choice_of(".5", ("5", ".5")) == 1
    for text in ("-3", "3.5", "3 million", "3,000"):
        assert choice_of(text, ("3", "5")) is None
    counts = ("5", "10", "15")
    assert [choice_of(text, counts) for text in ("3", "(2)", "10", "C")] == [None, None, 1, 2]


@pytest.mark.parametrize(
    ("response", "order"),
    [
        ("Beta > A Corp > Gamma Foods", (1, 0, 2)),
        ("1. Gamma Foods\n2. Beta\n3. A Corp", (2, 1, 0)),
        ("Beta: 1, Gamma Foods: 2, A Corp: 3", (1, 2, 0)),
        ("A Corp (3), Beta (1), Gamma Foods (2)", (1, 2, 0)),
        ("A Corp is 2nd, Beta is 1st, Gamma Foods is 3rd", (1, 0, 2)),
        ("Gamma Foods < A Corp < Beta", (1, 0, 2)),
        ("Here is the order:\nBeta, A Corp, Gamma Foods", (1, 0, 2)),
        ("A Corp looks biggest at first.\nBeta, A Corp, Gamma Foods", None),
        ("From smallest to largest: Gamma Foods, A Corp, Beta", (1, 0, 2)),
        ("From lowest to highest:\n1. Gamma Foods\n2. A Corp\n3. Beta", (1, 0, 2)),
        ("Beta > A Corp > Gamma Foods, in ascending order", None),
        ("Beta is larger than Gamma Foods but smaller than A Corp", None),
        ("A Corp: 30, Beta: 50, Gamma Foods: 40", None),
        ("A Corp: 3, Beta: 2, Gamma Foods: 1", None),
        ("Beta and A Corp, then Gamma Foods", None),
        ("Beta > A Corp, Gamma Foods", None),
        ("Beta, A Corp", None),
        ("Beta, Beta, A Corp, Gamma Foods", None),
        ("Betamax, A Corp, Gamma Foods", None),
        ("", None),
    ],
)
def test_rankings(response: str, order: tuple[int, ...] | None) -> None:
    assert ranking_of(response, FIRMS) == order


@settings(deadline=None)
@given(st.permutations(range(5)), st.sampled_from([" > ", ", ", "\n", " - "]))
def test_every_order_is_read_back(order: list[int], between: str) -> None:
    items = ["Alder", "Birch", "Cedar", "Elm Tree", "Fir"]
    assert ranking_of(between.join(items[i] for i in order), items) == tuple(order)
    ranks = {item: order.index(i) + 1 for i, item in enumerate(items)}
    told = ", ".join(f"{item}: {rank}" for item, rank in ranks.items())
    # Numbers that count down may be values: 5 is then the largest, not the last.
    counts_down = order == [4, 3, 2, 1, 0]
    assert ranking_of(told, items) == (None if counts_down else tuple(order))


def test_an_order_is_read_in_the_direction_that_was_asked() -> None:
    letters = ("A", "B", "C")
    assert ranking_of("A < B < C", letters) == (2, 1, 0)
    assert ranking_of("A < B < C", letters, asked_upward=True) == (0, 1, 2)
    assert ranking_of("From largest to smallest: C, B, A", letters, asked_upward=True) == (0, 1, 2)
    assert ranking_of("A > B > C", letters, asked_upward=True) is None


@pytest.mark.parametrize(
    ("response", "key", "unit", "expected"),
    [
        ("1.2", 1.2, "million bags", True),
        ("1.2 million bags", 1.2, "million bags", True),
        ("1,200,000 bags", 1.2, "million bags", True),
        ("6 million bags", 1.2, "million bags", False),
        ("1 1/5 million", 1.2, "million bags", True),
        ("1/250 x 300 = 1.2 million", 1.2, "million", True),
        ("1.08", 1.2, "", True),  # 0.9 of the key
        ("1.32", 1.2, "", True),  # 1.1 of the key
        ("1.079", 1.2, "", False),
        ("1.321", 1.2, "", False),
        ("5 feet", 5 / 3, "yards", True),
        # Other units, dates, signs and functions of the number: a person asks what is meant.
        ("$40", 40, "euros", None),
        ("$40", 40, "dollars a barrel", True),
        ("$40 million", 40, "million", True),
        ("40 km", 40, "km/h", None),
        ("40 miles", 40, "miles per hour", None),
        ("40 miles per hour", 40, "miles per hour", True),
        ("40 km", 40, "km2", None),
        ("12.5.2020", 12, "", None),
        ("√40", 40, "", None),
        ("40 is too high", 40, "", None),
        ("Ignore 40", 40, "", None),
        ("5 feet", 5, "yards", False),
        ("1 yard", 1, "yard", True),
        ("2 kg", 2, "yards", None),
        ("five", 5, "", True),
        ("FİVE", 5, "", None),
        ("twenty-five trucks", 25, "trucks", True),
        ("50 %", 50, "%", True),
        ("50 %", 0.5, "", True),
        ("0.5", 50, "%", True),
        ("-3", -3, "", True),
        ("(3)", -3, "", None),  # as accountants write it
        ("-(3)", 3, "", None),
        ("($3)", -3, "dollars", None),
        ("6/2", 3, "", None),
        ("3/4", 0.75, "", True),
        ("8/10", 8, "", None),
        ("5.10 feet", 5.85, "feet", None),
        ("5.5 feet", 5.5, "feet", True),
        ("2.25 hours", 2.25, "hours", True),
        ("1.30 hours", 1.5, "hours", None),
        ("3", -3, "", False),
        ("0.01", 0, "", False),
        ("between 1 and 2", 1.2, "", None),
        ("They eat 1.2 million bags (2018 = 250, 2019 = 300).", 1.2, "million bags", None),
        ("1.2 million (1,200,000) bags", 1.2, "million bags", True),
        ("5 feet (1.67 yards)", 5 / 3, "yards", True),
        ("1200", 1.2, "million bags", None),
        ("1.2 million", 1.2, "", None),
        ("50 %", 50, "", None),
        ("It fell by 3", -3, "", None),
        ("+20%", 1.2, "", None),
        ("The answer is 20 percent", 1.2, "times", None),
        ("-20%", 0.8, "", None),
        ("20%", 1.6, "", False),
        ("20%", 120, "%", False),
        ("It climbed 3", 8, "", None),
        ("24 months", 2, "years", None),
        ("3 dozen", 3, "eggs", None),
        ("10⁶", 106, "", None),
        ("not 5", 5, "", None),
        ("1/0", 1.2, "", None),
    ],
)
def test_numbers(response: str, key: float, unit: str, expected: bool | None) -> None:
    assert number_is_right(response, key, unit) is expected


@pytest.mark.parametrize(
    ("response", "key", "unit", "expected"),
    [
        ("5", 1e299, "trillion bags", None),
        ("5", 1e308, "million bags", None),
        ("5", 1e299, "bags", False),
        ("1e299 trillion", 1.0, "bags", False),
        ("1" * 400, 1e299, "bags", None),
        ("1" * 400, 5.0, "bags", None),
        ("1e-290", 1e-293, "bags", None),  # a thousandfold, as 1000 is of 1
        ("1e-290", 1e-290, "bags", True),
        ("1e-290", 5e-290, "bags", False),
    ],
)
def test_numbers_beyond_a_float_are_near_nothing(
    response: str, key: float, unit: str, expected: bool | None
) -> None:
    assert number_is_right(response, key, unit) is expected


def test_only_infinity_is_near_infinity() -> None:
    assert not is_near_any([5.0, 1e308], [math.inf], 0.5)
    assert not is_near_any([math.inf], [5.0, 1e308], 0.5)
    assert is_near_any([math.inf], [5.0, math.inf], 0.5)


@settings(deadline=None)
@given(st.floats(1e-3, 1e6), st.floats(0.8, 1.2))
def test_ten_percent_around_the_key(key: float, share: float) -> None:
    if abs(abs(share - 1) - 0.1) > 1e-6:  # the edges are tested above
        assert number_is_right(f"{key * share:.12f}", key, "") is (abs(share - 1) < 0.1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-4", -4),
        ("\u22124", -4),
        (".5", 0.5),
        ("$1,200.50", 1200.5),
        ("3e5", 3e5),
        ("3 x 10^5", 3e5),
        ("1½", 1.5),
        ("3/4", 0.75),
        ("2 1/2 tons", 2.5),
        ("seventeen", 17),
        ("forty two", 42),
        ("25%", 0.25),
        ("The answer is 7, since 3 + 4 make it.", None),
        ("3 + 4 = 7", 7),
        ("It is \\boxed{9}", 9),
        ("5 or 6", None),
    ],
)
def test_the_number_an_answer_settles_on(text: str, value: float | None) -> None:
    found = final_quantity(text)
    assert (found.value if found else None) == (value if value is None else pytest.approx(value))


def test_digits_within_names_are_no_numbers() -> None:
    assert find_quantities("Q4 of model v2 beats GPT-5b") == []
    assert [q.number for q in find_quantities("G7 has 12")] == [12]


@settings(deadline=None)
@given(st.floats(-1e9, 1e9).map(lambda value: round(value, 6)))
def test_any_plain_number_is_read_back(value: float) -> None:
    found = final_quantity(f"about {value:.6f} units")
    assert found is not None
    assert found.value == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "share", "reasons"),
    [
        ("0.35\nThe axis is cut.", 0.35, "The axis is cut."),
        ("0.35. The axis starts at 90.", 0.35, "The axis starts at 90."),
        ("35 % of them, as 2 bars look alike", 0.35, "of them, as 2 bars look alike"),
        ("Prediction: 0.7 (guess)", 0.7, "(guess)"),
        ("3/10 because", 0.3, "because"),
        ("0", 0, ""),
        ("35", None, "35"),
        ("0.2-0.4 roughly", None, "0.2-0.4 roughly"),
        ("between 0.2 and 0.4", None, "between 0.2 and 0.4"),
        ("-0.1", None, "-0.1"),
        ("1. Estimate: 0.3\n2. The axis", None, "1. Estimate: 0.3\n2. The axis"),
        ("0,3 because", None, "0,3 because"),
        ("1. Everybody is fooled", 1, "Everybody is fooled"),
        ("Nobody is fooled", None, "Nobody is fooled"),
        ("Half of them", 0.5, "of them"),
        ("35 % of 20 people", 0.35, "of 20 people"),
        ("1 of tenants and owners alike", 1, "of tenants and owners alike"),
        ("This one is easy to misread: 0.35", 0.35, ""),
        ("One would expect about 0.4", 0.4, ""),
        ("Zero-based axis is missing, so 0.6", 0.6, ""),
        *(
            (text, None, text)
            for text in (
                *("1 in 5 students", "1 out of 4", "2 of 10", "One in five students"),
                *("One third of them", "one quarter", "one in three: 0.33", "one of 4"),
            )
        ),
        ("", None, ""),
    ],
)
def test_mind_answers(text: str, share: float | None, reasons: str) -> None:
    found, said = parse_fraction(text)
    assert found == (share if share is None else pytest.approx(share))
    assert said == reasons


HELD = [
    ("There are 3 people", "3"),
    ("CO₂", "CO2"),
    ("It's the Ian-Smith house", "Ian"),
    ("U.S.A.", "USA"),
    ("答案是３个人", "3"),
    ("五角大楼位于巴黎市", "巴黎"),
    ("5km long", "5 km"),
    ("5km long", "5"),
    ("Vermeer’s pearl", "Vermeer"),
    ("painted by Vermeer⁶", "Vermeer"),
    ("Röntgen，（1901）", "1901"),
    ("It is the letter A.", "A"),
    ("有三个人", "三"),
    ("(-5)", "-5"),
    ("minus 5", "−5"),
    ("温度是-5度", "-5"),
    ("from 1990-1995", "1995"),
    ("10²", "10^2"),
    ("½", "1/2"),
    ("rock-n-roll", "rock n roll"),
    ("3-year-old", "3"),
    ("1 1/2", "1½"),
    ("twenty-three", "twenty three"),
    ("5%", "5"),
    ("用iPhone拍的", "iPhone"),
    ("第１３届", "13"),
    ('the "Beatles"', "the Beatles"),
    ("about 1,000,000 people", "1000000"),
    ("١٥", "15"),
    ("१५ बजे", "15"),
    (".5", "0.5"),
    ("It is -0.5.", "-.5"),
    (f"{'1' * 3_001} or {'1' * 1_500}", "1" * 1_500),
]
NOT_HELD = [
    ("13 people", "3"),
    ("smart phone", "art"),
    ("-5 degrees", "5"),
    ("有１３个人", "3"),
    ("3.14", "14"),
    ("3.14", "3"),
    ("1,000", "1"),
    ("10²", "102"),
    ("I do not know", "No"),
    ("十三", "三"),
    ("十三个", "三个"),
    ("三百五十", "三百"),
    ("minus 5", "5"),
    ("零下5度", "5"),
    ("1/2", "12"),
    ("1/2", "2"),
    ("½", "12"),
    (".5", "5"),
    ("5 million", "5"),
    ("300万", "300"),
    ("twenty-three", "three"),
    ("vitamin C", "vitamin A"),
    ("5th", "5"),
    ("A4 paper", "4"),
    ("12:30", "1230"),
    ("(-5)", "5"),
    ("$-5", "5"),
    ("x", ""),
    ("anything", " "),
    ("1,2,3", "123"),
    ("3,14", "314"),
    ("温度是-5度", "5"),
    ("1e5 of them", "1"),
    ("١٥", "5"),
    ("-.5", "0.5"),
    ("1" * 3_001, "1" * 1_500),
]


@pytest.mark.parametrize(
    ("text", "reference", "is_held"),
    [*((*pair, True) for pair in HELD), *((*pair, False) for pair in NOT_HELD)],
)
def test_whole_words_and_numbers_are_held(text: str, reference: str, is_held: bool) -> None:
    assert holds(text, reference) is is_held


@given(st.integers(-2000, 2000), st.integers(-2000, 2000), st.sampled_from(["en", "zh"]))
def test_a_number_is_held_by_itself_alone(stated: int, reference: int, language: str) -> None:
    sentence = {"en": f"There are {stated} of them.", "zh": f"一共有{stated}个。"}[language]
    assert holds(sentence, str(reference)) is (stated == reference)


@given(st.text(alphabet="abcdefgh", min_size=1), st.text(alphabet="abcdefgh", min_size=1))
def test_a_word_is_held_by_itself_alone(stated: str, reference: str) -> None:
    if "a" not in (stated, reference):  # the article
        assert holds(f"It is {stated}!", reference) is (stated == reference)


@given(st.text(max_size=40))
def test_any_text_holds_itself(text: str) -> None:
    assert holds(text, text) is (normalise(text) != "")


def test_few_long_texts_are_kept() -> None:
    """Thousands of long responses would fill the memory."""
    texts = [f"{number} {'x' * 2_000}" for number in range(40)]
    known = sys.getrefcount(texts[0])
    for text in texts:
        holds(text, "y")
    kept = sys.getrefcount(texts[0])  # an assertion would hold it, too
    assert kept == known


@pytest.mark.parametrize(
    ("key", "response", "label"),
    [
        ("$5", "$5.20", "Correct"),
        ("$5", "5", "Correct"),
        ("$5 million", "$5,100,000", "Correct"),
        ("$5", "5 euros", None),
        ("$5", "5 cents", None),
        ("3 dozen", "36", "Correct"),
        ("3 lakh", "300,000", "Correct"),
        ("3 crore", "20 million", "Incorrect"),
        ("-3 degrees", "- 3", None),
        ("-3 degrees", "3", "Incorrect"),
    ],
)
def test_the_currency_the_multiple_and_the_sign_of_a_key_count(
    key: str, response: str, label: str | None
) -> None:
    fields = {"variant": "number", "question": "How much?", "references": [key]}
    request = {"task": "chartom-fact", "response": response, **fields}
    ruling = get_task("chartom-fact").rule(JudgeRequest.model_validate(request))
    assert (ruling and ruling.label) == label


@pytest.mark.parametrize(
    ("variant", "key", "response"),
    [
        ("ranking", "a " * 40_000 + "b", "a " * 75_000),
        ("ranking", "a " * 900 + "b", "a " * 4_990),  # the most that is read
        ("number", f"1 {'a' * 75_000}b", "a" * 150_000),
        ("number", f"1 {'a' * 1_900}b", "a" * 9_990),
    ],
)
def test_a_long_key_is_not_looked_for_in_a_long_answer(
    variant: str, key: str, response: str
) -> None:
    keys = [key, "c"] if variant == "ranking" else [key]
    fields = {"variant": variant, "question": "Which?", "references": keys, "response": response}
    request = JudgeRequest.model_validate({"task": "chartom-fact", **fields})
    started = time.process_time()
    assert get_task("chartom-fact").rule(request) is None
    assert time.process_time() - started < 2


def test_a_mark_of_an_item_in_a_response_is_no_item() -> None:
    assert ranking_of("A Corp > Beta \0" + "1" * 5_000 + "\0 > Gamma Foods", FIRMS) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  The  Beatles! ", "beatles"),
        ("Ｒöntgen，（1901）", "röntgen1901"),
        ("It's a dog, an owl", "its dog owl"),
        ("3.50", "3.50"),
        ("\N{MINUS SIGN}2", "-2"),
        ("1990-1995", "1990 1995"),
        ("10²", "10^2"),
        ("1½", "1 1/2"),
        (".5 or 3.5", "0.5 or 3.5"),
        ("Vitamin A, group A won", "vitamin a group a won"),
        ("the", "the"),
        ("", ""),
        ("Straße", "strasse"),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected
