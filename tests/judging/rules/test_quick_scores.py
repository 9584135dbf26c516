"""What rules decide of quick scores, and what they leave to a judge."""

from time import process_time
from typing import Any

import pytest

from judging.tasks import get_task
from tests.judging.made_up import ask

QS = get_task("hieval-qs")


def ruled(references: tuple[str, ...], response: str, **fields: object) -> str | None:
    given = {"references": references, "reference_mode": "any", "question": "What is its value?"}
    ruling = QS.rule(ask(response, **(given | fields)))
    return ruling.label if ruling else None


WORK = "<think>It is 3? Or 4.</think>First I try 1/3, which is too small.\n\n"


CITIES = ("Sydney", "Perth")


@pytest.mark.parametrize(
    ("references", "choices", "response", "label"),
    [
        ((r"\frac{1}{2}",), (), WORK + r"The answer is $\boxed{0.5}$.", "Correct"),
        ((r"\frac{1}{2}",), (), WORK + r"The answer is $\boxed{0.7}$.", "Wrong"),
        (("3", r"\frac{1}{2}"), (), WORK + "Answer: 50%", "Correct"),
        (("1/2",), (), WORK + r"$\boxed{0.5}$ or $\boxed{0.7}$", None),
        (("1/2",), (), WORK + "So the next step", None),
        (("one half",), (), WORK + r"$\boxed{0.5}$", None),
        (("19",), (), "19", None),  # a short answer, of which a judge gives the probability
        (("19",), (), WORK + "Answer: 19", "Correct"),
        (("Perth",), CITIES, WORK + "Final answer: B", "Correct"),
        (("Perth",), CITIES, WORK + r"$\boxed{\text{A}}$", "Wrong"),
        (("Perth",), CITIES, WORK + "**Perth (B)**", "Correct"),
        (("Perth",), CITIES, WORK + "Perth (A)", None),
        (("Perth",), CITIES, "It may be A.\n\nAnswer: B or A", None),
        (("Perth",), CITIES, WORK + "So the answer is A) Sydney.\n\nAnswer: A", "Wrong"),
        (("Perth",), CITIES, WORK + "So the answer is B) Perth.\n\nAnswer: A", None),
        (("1/2",), (), WORK + "It is $\\boxed{\\frac12}$.\n\nAnswer: 0.5", "Correct"),
        (("1/2",), (), WORK + "It is $\\boxed{1/2}$.\n\nAnswer: 0.7", None),
        (("1/2",), (), WORK + "Answer: 0.6\n\nI look again.\n\nAnswer: 0.7", None),
        (("80 cm",), (), WORK + r"The rod is \(\boxed{800}\) mm.", "Correct"),
        (("80 cm",), (), WORK + r"The rod is \(\boxed{100}\) cm.", "Wrong"),
    ],
)
def test_final_answers_in_mathematics_and_of_options(
    references: tuple[str, ...], choices: tuple[str, ...], response: str, label: str | None
) -> None:
    assert ruled(references, response, choices=choices) == label


@pytest.mark.parametrize(
    ("question", "reference", "response", "label"),
    [
        ("Is it spam?\nText: Hi\nLabels: spam, ham", "ham", WORK + "Answer: Ham", "Correct"),
        ("Is it spam?\nText: Hi\nLabels: spam, ham", "ham", r"\boxed{\text{spam}}", "Wrong"),
        ("Is it spam? Answer with one of spam or ham.\n\nHi", "ham", "**spam**", "Wrong"),
        ("属于哪类？\n标签：财经, 科技", "科技", "答案：财经", "Wrong"),
        ("Is it spam?\nText: Hi\nLabels: spam, ham", "ham", "Answer: A", None),
        ("Is it spam?\nText: Hi\nLabels: spam, ham", "ham", "Answer: not spam", None),
        ("Is it spam?\nText: Hi\nLabels: spam, ham", "no spam", "Answer: spam", None),
        ("Is this spam, ham or neither?", "ham", "Answer: spam", None),
    ],
)
def test_listed_classes(question: str, reference: str, response: str, label: str | None) -> None:
    assert ruled((reference,), response, question=question) == label


def test_several_right_classes() -> None:
    question = "Which topics?\nLabels: sports, science, politics"
    given = {"question": question, "reference_mode": "all"}
    assert ruled(("sports", "science"), "Answer: sports", **given) is None


TWO = "If $x + y = 7$ and $y = 2$, what is $x$?"


@pytest.mark.parametrize(
    ("question", "reference", "response", "label"),
    [
        ("Solve $2x - 3 = 7$.", "5", r"\boxed{x=5}", "Correct"),
        ("Solve $2x - 3 = 7$.", "x = 5", r"\boxed{5}", "Correct"),
        ("Solve $2x - 3 = 7$.", "5", r"\boxed{y=5}", None),
        ("Solve $2x - 3 = 7$.", "5", r"\boxed{y=6}", "Wrong"),
        ("求方程 $x^2 = 9$ 的所有解。", r"\{-3, 3\}", "x = 3, x = -3", "Correct"),
        (TWO, "5", "x = 5", "Correct"),
        (TWO, "5", "y = 5", None),
        (TWO, "y = 5", "y = 5", "Correct"),
        ("已知 x+y=7，y=2，求 x 的值。", "5", "x=5", "Correct"),
        ("已知 x+y=7，y=2，求 x 的值。", "5", "y=5", None),
        ("If 3x = 6, what is 2x + 1?", "5", "x = 5", None),
        ("Find x^2 if x + 1 = 3.", "4", "x = 4", None),
        ("What is the speed v after 4 s?", "5", "v = 5", "Correct"),
        ("How old is Ann?", "5", r"\boxed{a = 5}", "Correct"),
        ("Simplify $2x + 3x - 1$.", "5x - 1", r"\boxed{2x+3x - 1}", None),
        ("Simplify $2x + 3x - 1$.", "5x - 1", r"\boxed{(2 + 3)x - 1}", None),
        ("Simplify $2x + 3x - 1$.", "5x - 1", r"\boxed{-1 + 5x}", "Correct"),
        ("Simplify $2x + 3x - 1$.", "5x - 1", r"\boxed{2x + 3x}", "Wrong"),
        ("What is $\\frac{2}{2} - \\frac{1}{2}$?", "1/2", r"\boxed{\frac{1}{2}}", "Correct"),
        ("Is $2x + 1$ simple?", "2x + 1", r"\boxed{2x + 1}", "Correct"),
        ("Find f(x) if f(0) = 1.", "2x + 1", "f(x) = 2x + 1", "Correct"),
        ("Find f(x) if f(0) = 1.", "2x + 1", "g(x) = 2x + 1", None),
        ("Solve $x + 1 > 2$.", r"(1, \infty)", "x > 1", "Correct"),
        ("Solve $x + 1 > 2$.", r"(1, \infty)", "y > 1", None),
        ("Which horizontal line runs through (2, 5)?", "y = 5", "y = 5", "Correct"),
        ("Which horizontal line runs through (2, 5)?", "y = 5", r"\boxed{5}", None),
        ("Solve x + y = 7, x - y = -1.", "x = 3, y = 4", r"\boxed{y = 4, x = 3}", "Correct"),
        ("Solve x + y = 7, x - y = -1.", "x = 3, y = 4", r"\boxed{x = 4, y = 3}", "Wrong"),
        ("Solve x + y = 7, x - y = -1.", "x = 3, y = 4", r"\boxed{x = 3}", None),
    ],
)
def test_a_value_under_a_name_is_right_where_the_question_asks_for_it(
    question: str, reference: str, response: str, label: str | None
) -> None:
    assert ruled((reference,), response, question=question) == label


@pytest.mark.parametrize(
    ("question", "reference", "response", "label"),
    [
        ("Which version of Python has match?", "3.10", "The answer is 3.1", None),
        ("What is 1 + 2.1?", "3.1", "The answer is 3.1", "Correct"),
        ("What is the time signature?", "3/4", "6/8", None),
        ("In which time is the jig?", "6/8 time", "3/4 time", None),
        ("In which time is the march?", "4/4", "Answer: 1", None),
        ("When did it happen?", "9/11", "11/9", None),
        ("When did it happen?", "12/6", "Answer: 2", None),
        ("What was the blood pressure?", "120/80", "Answer: 1.5", None),
        ("What was the blood pressure?", "120/80", "130/80", "Wrong"),
        ("What was the total score?", "8/10", "Answer: 8", None),
        ("In which time is the violin's part?", "6/8 time", "3/4 time", None),
        ("What was their record?", "5.0", "10/2", None),
        ("What is 10 divided by 2?", "5.0", "10/2", None),
        ("How far is it?", "5 km", r"\boxed{10/2} km", None),
        ("What is 10 divided by 4?", "2.5", "5/2", "Correct"),
        ("How far is it?", "2.5 km", r"\boxed{5/2} km", "Correct"),
        ("What is 1/2 of 0.5?", "0.25", "0.5/2", None),
        ("Where do they meet?", "(5, 3)", "(10/2, 3)", None),
        ("Which room is it?", "1E3", "Answer: 1000", None),
        ("Which film is by Fellini?", "8½", "17/2", None),
        ("Which film is it?", "48 hours", "2 days", None),
        ("Which release is it?", "5.0", "Answer: 5", None),
        ("What is the tax?", "5%", "Answer: 5.0%", "Correct"),
        ("Which is the atomic number of carbon?", "6", "Answer: 6.0", "Correct"),
        ("What is $m$?", "2.5", "Answer: 5/2", "Correct"),
        ("Which are the coordinates of $P$?", "(1, 2)", r"\boxed{(2, 1)}", "Wrong"),
        ("What do the boards measure?", "2 × 4", "Answer: 8", None),
        ("How large is the sensor?", "24 × 36 mm", "36 × 24 mm", None),
        ("What was the final score?", "$3-1$", "$1-3$", None),
        ("Where is it?", "(40.7, -74.0)", "(-74.0, 40.7)", None),
        ("When does it open?", "9.30 am", "9.3 am", None),
        ("How long did it take?", "1.30 hours", "1.5 hours", None),
        ("How tall is she?", "5.10 feet", "70 inches", None),
        ("How tall is she?", "6 feet", "72 inches", "Correct"),
        ("How tall is the tree?", "5.5 feet", "6.5 feet", "Wrong"),
        ("How long did it take?", "2.25 hours", "2.25 hour", "Correct"),
        ("What was the income?", "-500", "(500)", None),
        ("What was the income?", "-5%", "(5)%", None),
        ("What was the income?", "(500) million", "500 million", None),
        ("What was the temperature?", "-5 degrees", "5 degrees", None),
        ("Which share?", "3/4", "2/3", "Wrong"),
        ("Which share?", "3/4", "4/3", "Wrong"),
        ("Which share?", "3/4", "75%", "Correct"),
        ("By how much did sales fall?", "5%", "The answer is -5 %", None),
        ("By how much is Tom shorter?", "5 cm", "The answer is -5 cm", None),
        ("海拔是多少?", "-430 m", "答案：430 m", None),
        ("Give an example of a prime above 10.", "11", "Answer: 13", None),
        ("Find an eigenvector.", "(1, 2)", r"\boxed{(2, 4)}", None),
        ("写出一个大于10的质数。", "11", "答案：13", None),
        ("Find $3^{-1}$ mod 7.", "5", "Answer: 12", None),
        ("Find the integral of $2x$.", "x^2", "Answer: x^2 + 1", None),
        ("Find the integral of $2x$ from 0 to 1.", "1", "Answer: 2", "Wrong"),
        ("On which interval does $f$ increase?", r"(1, \infty)", r"[1, \infty)", None),
        ("On which interval does $f$ increase?", "(0, 5)", r"\boxed{(0, 6)}", "Wrong"),
        (r"Find $\theta$.", r"-\frac{\pi}{2}", r"\boxed{\frac{3\pi}{2}}", None),
        ("What is the angle?", "-90°", "270°", None),
        ("What is the angle?", r"\frac{\pi}{2}", r"-\frac{3\pi}{2}", None),
        ("What is the angle?", "90°", "70°", "Wrong"),
        ("What is its area?", r"4\pi", r"2\pi", "Wrong"),
        ("What is the temperature?", "20 degrees", "68 degrees", None),
        ("How long did it take?", "1 h 30", "1.5 h", None),
        ("What is the next prime after 10?", "11", "Answer: 13", "Wrong"),
        ("What is 5% - 10%?", "5%", "The answer is -5 %", "Wrong"),
        ("How many metres are 5 km?", "5000 m", "The answer is 5 km.", None),
        ("How far did she run?", "5000 m", "The answer is 5 km.", "Correct"),
        ("Write 8/12 in lowest terms.", r"\frac{2}{3}", r"\boxed{\frac{4}{6}}", None),
        ("Write 8/12 in lowest terms.", r"\frac{2}{3}", "The answer is 2/3", "Correct"),
        ("Write 8/12 in lowest terms.", r"\frac{2}{3}", r"\boxed{\dfrac{2}{3}}", "Correct"),
        ("Write 0.75 as a fraction.", "3/4", "The answer is 75%", None),
        ("Factor $12$ into primes.", r"2^2 \cdot 3", r"\boxed{4 \cdot 3}", None),
        ("Factor $x^2 - 1$.", "(x - 1)(x + 1)", r"\boxed{x^2 - 1}", None),
        ("Factor $x^2 - 1$.", "(x - 1)(x + 1)", r"\boxed{x^2 - 2}", "Wrong"),
        ("Expand or factor $x^2 + 9x - 5x$.", "$x^2 + 4x$", r"\boxed{(x + 4)x}", "Correct"),
        ("Write 45,000 in scientific notation.", r"4.5 \times 10^4", r"\boxed{45000}", None),
        ("Compute 7 times 8.", "56", r"\boxed{7 \times 8}", None),
        ("Simplify $6/8$.", "3/4", r"\boxed{\frac{6}{8}}", None),
        ("Reduce $10/20$.", "1/2", r"\boxed{\frac{5}{10}}", None),
        ("Simplify $\\sqrt{8}$.", r"2\sqrt{2}", r"\boxed{\sqrt{8}}", None),
        ("Simplify $\\sqrt{8}$.", r"2\sqrt{2}", r"\boxed{2\cdot\sqrt{2}}", "Correct"),
        ("Simplify sin^2 x + cos^2 x.", "1", r"\boxed{\sin^2 x + \cos^2 x}", None),
        ("Simplify $(x^2 - 1)/(x - 1)$.", "x + 1", r"\boxed{\frac{(x-1)(x+1)}{x-1}}", None),
        ("Multiply $(x+1)(x+2)$.", "x^2 + 3x + 2", r"\boxed{(x+2)(x+1)}", None),
        ("What is the perimeter?", "2a + 2b", r"\boxed{a + a + b + b}", None),
        ("What is the perimeter?", "2a + 2b", r"\boxed{2(a + b)}", "Correct"),
        ("Compute $1/2 + 1/4$.", "3/4", r"\boxed{\frac{2}{4} + \frac{1}{4}}", None),
        ("What is its area?", r"9\pi", r"\boxed{3^2 \cdot \pi}", None),
        ("What is 2 + 2?", "4", "Answer: 2²", None),
        ("What is 2 + 2?", "4", "Answer: √16", None),
        ("What is 2.5 times 2?", "5.0", r"\boxed{2.5 \cdot 2}", None),
        ("Which roots has it?", r"\{-1, -2, 1\}", "The answer is 1, -1, -2", "Correct"),
        ("Solve $2x = 6$.", "x = 3", r"\boxed{x = 1 + 2}", None),
        ("Solve $2x = 6$.", "x = 3", r"\boxed{4x = 12}", None),
        ("Solve $2x = 6$.", "x = 3", r"\boxed{x = 3}", "Correct"),
        ("Convert 90 minutes to hours.", "1.5 hours", r"\boxed{5400\text{ seconds}}", None),
        ("How long did it take?", "1.5 hours", r"\boxed{90\text{ minutes}}", "Correct"),
        ("Write 3/4 in decimal form.", "0.75", r"\boxed{\frac{6}{8}}", None),
        ("What percentage?", "12.5", r"\boxed{\frac{1}{8}}", None),
        ("How much, in millions of dollars?", "$1.2", "The answer is $1,200,000.", None),
        ("How much, in millions of dollars?", "$1.2", "The answer is $1,300,000.", "Wrong"),
        ("How many?", "18", "The answer is ~18", None),
        ("How many?", "18", "Answer: 18 [1]", None),
        ("Which roots?", "1, 2", "The answer is 1, 2, 2", None),
        ("Which roots?", "1, 2", "The answer is 1, 3, 3", "Wrong"),
        ("What is 12 squared?", "144", "12^2", None),
        ("What is 12 squared?", "144", "12^2 = 144", "Correct"),
        ("What is 12 squared?", "144", r"\boxed{1.44 \times 10^{2}}", "Correct"),
    ],
)
def test_an_equal_value_that_may_not_be_what_is_asked_is_left_to_a_judge(
    question: str, reference: str, response: str, label: str | None
) -> None:
    assert ruled((reference,), response, question=question) == label


MOON = "July 20, 1969"


@pytest.mark.parametrize(
    ("reference", "response", "label"),
    [
        (MOON, "1969-07-20", "Correct"),
        (MOON, "20.07.1969", "Correct"),
        (MOON, WORK + "The answer is 20 July 1969.", "Correct"),
        (MOON, "**On the 20th of July, 1969.**", "Correct"),
        ("Sept. 3, 1939", "3 September 1939", "Correct"),
        ("Sept. 3, 1939", "3 ſeptember 1939", "Correct"),
        ("June 6, 1970", "6/6/1970", "Correct"),
        (MOON, "July 2, 1969", "Wrong"),
        (MOON, "1969-06-20", "Wrong"),
        (MOON, "21 July 1969", None),  # the same time in another zone
        ("November 7, 1917", "25 October 1917", None),  # the same day in another calendar
        ("June 5, 1970", "6/5/1970", None),  # in June, or in May
        ("June 5, 1970", "7/8/1970", None),
        ("July 1969", "20 July 1969", None),
        (MOON, "July 1969", None),
        (MOON, "1969", None),
        (MOON, "Not 20 July 1969", None),
        (MOON, "20 July 1969 or 24 July 1969", None),
        ("February 30, 1969", "2 March 1969", None),
    ],
)
def test_a_day_is_the_same_in_any_layout(reference: str, response: str, label: str | None) -> None:
    assert ruled((reference,), response, question="When was it?") == label


def test_a_day_is_in_the_layout_that_is_asked_for() -> None:
    given = {"question": "Write July 20, 1969 in ISO format."}
    assert ruled(("1969-07-20",), MOON, **given) is None
    assert ruled(("1969-07-20",), "1969-07-20", **given) == "Correct"
    assert ruled(("1969-07-20",), "1969-07-02", **given) == "Wrong"


def test_other_words_of_a_question_ask_for_no_layout() -> None:
    for question in (
        "When was the book written?",
        "On what day did he write it?",
        "When was American Express founded?",
        "When was the Bible first translated?",
        "When was ISO 9001 published?",
    ):
        assert ruled(("1969-07-20",), MOON, question=question) == "Correct"
    for question in ("Give the day as YYYY-MM-DD.", "When did they land, in ISO format?"):
        assert ruled(("1969-07-20",), MOON, question=question) is None


def test_a_long_question_is_read_in_linear_time() -> None:
    started = process_time()
    for reference, response in (("5", "Answer: 6"), ("1/2", "Answer: 0.5")):
        for part in ("interval ", "1/2 ", "in a ", r"\int ", "$x "):
            ruled((reference,), response, question=part * 10_000)
    assert process_time() - started < 10


def test_days_among_others() -> None:
    given = {"question": "When was it?"}
    assert ruled((MOON, "July 24, 1969"), "1969-07-24", **given) == "Correct"
    assert ruled((MOON, "July 24, 1969"), "1969-07-30", **given) == "Wrong"
    assert ruled((MOON, "in summer"), "1969-07-30", **given) is None
    assert ruled((MOON, "July 24, 1969"), "1969-07-24", reference_mode="all", **given) is None
    assert ruled((MOON,), "1968-07-20", reference_mode="any-partial", **given) is None
    assert ruled((MOON,), "1969-07-20 " * 10_000, **given) is None


@pytest.mark.parametrize(
    ("says", "responses"),
    [
        ("yes", ("Yes", "**yes.**", "是的。", "Ja!", r"\boxed{Yes}", WORK + "Answer: yes")),
        ("no", ("No", "no.", "Nope!", "Nein.", "不是", WORK + "Answer: **No**")),
        (None, ("No doubt there is.", "No. 5", "Nobody", "Yes and no", "yes / no", "Yes, hardly")),
        (None, ("Yes, but it is a cat.", "No, wait, yes.", "Yes, there is no dog.", "Yes " * 1000)),
    ],
)
def test_a_bare_yes_or_no_is_decided(says: str | None, responses: tuple[str, ...]) -> None:
    asked = "Is there a dog in the picture?"
    for response in responses:
        for reference in ("Yes", "no."):
            label = "Correct" if says == reference.lower().strip(".") else "Wrong"
            expected = label if says else None
            assert ruled((reference,), response, question=asked) == expected, response
        assert ruled(("No, a cat",), response, question=asked) is None
        assert ruled(("Yes", "No"), response, question=asked) is None


@pytest.mark.parametrize(
    "question",
    [
        "Isn't there a dog?",
        "Ist da kein Hund?",
        "¿Nunca nieva en Lima?",
        "Il ne fume pas ?",
        "N'est-il pas grand ?",
        "他不是医生吗?",
        "Which band sang it?",
        "Who sang it?",
        "Name the band.",
        "Say that you agree, in German.",
        "Chemical symbol of nobelium?",
        "Was heißt 'oui' auf Deutsch?",
        "'是'的英文是什么?",
    ],
)
def test_a_question_after_which_yes_may_mean_no_or_be_a_name_is_left(question: str) -> None:
    assert ruled(("Yes",), "Ja", question=question) is None
    assert ruled(("Ja",), "nein", question=question) is None
    assert ruled(("是",), "不是", question="图中是不是有狗?") == "Wrong"


def test_what_may_be_partly_right_or_near_is_left_to_a_judge() -> None:
    subset = ((r"\{1, 2\}",), WORK + r"$\boxed{\{1\}}$")
    assert ruled(*subset) == "Wrong"
    assert ruled(*subset, reference_mode="all") is None
    assert ruled(("1/2", "1/3"), WORK + r"$\boxed{1/2}$", reference_mode="all") is None
    near = (("100 cm",), WORK + r"$\boxed{104\text{ cm}}$")
    assert ruled(*near) == "Wrong"
    assert ruled(*near, variant="tolerance") is None


@pytest.mark.parametrize(
    ("reference", "response", "fields"),
    [
        ("Yes", "Yes", {"question": "Is it red?"}),
        ("Paris", "A", {"question": "Which city?", "choices": ("Paris", "Rome")}),
        ("1969-07-20", "20 July 1969", {"question": "When was it?"}),
        ("2 km", "3 km", {"question": "How far is it?"}),
    ],
)
def test_rows_with_criteria_are_left(reference: str, response: str, fields: dict[str, Any]) -> None:
    assert ruled((reference,), response, **fields) is not None
    assert ruled((reference,), response, criteria=("Give a reason.",), **fields) is None
