"""Final answers and their equality, against made forms, made pairs and math-verify itself."""

from concurrent.futures import ThreadPoolExecutor
from random import Random
from time import process_time

import pytest
from math_verify import parse, verify

from data_prep.made.mathematics import KINDS, make_problem
from judging.rules.final_answers import final_answers
from judging.rules.mathematics import _compared, same_mathematics

EQUAL = [
    (r"\frac{1}{2}", "0.5"),
    (r"\frac12", "50%"),
    (r"1\frac{1}{2}", "1 1/2"),
    ("0.001", "10^-3"),
    (r"\sqrt{8}", "2√2"),
    ("x^2 + 2x + 1", "(x+1)²"),
    (r"\frac{x+1}{2}", "0.5x + 0.5"),
    (r"(1, 2]", r"1 < x \le 2"),
    ("x > 3", r"(3, \infty)"),
    (r"\{1, 2\}", "x = 2 or x = 1"),
    (r"\{-3, 3\}", r"x = \pm 3"),
    ("(3, 4)", "x = 3, y = 4"),
    ("y = 2x + 1", "4x - 2y + 2 = 0"),
    (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "[[1, 2], [3, 4]]"),
    ("440 mm", r"44\,\text{cm}"),
    (r"(-\infty, 1) \cup (2, 3]", r"(2,3]\cup(-\infty,1)"),
    (r"\ln 8", r"3\ln(2)"),
    (r"\log_{2}(8)", "3"),
    (r"$x = 5$", "5"),
    ("１２", "12"),
    (r"e^{2x}", r"(e^{x})^{2}"),
    (r"\pi r^2 h", r"h \pi r^{2}"),
    (r"\frac{a}{b}c", r"\frac{ac}{b}"),
    (r"\sin 2x \cos x", r"\cos x\sin(2x)"),
    (r"\{1, 2\}", "x_1 = 2, x_2 = 1"),
    (r"\sqrt[3]{16}", r"2\sqrt[3]{2}"),
    (r"3\sqrt{6}", r"3 \cdot 6^{1/2}"),
    ("3.2 million", "3,200,000"),
    (r"3.2\text{ million}", "3200 thousand"),
    ("3 hundred thousand", "300,000"),
    ("2 million people", "2,000,000 people"),
    ("$1.5 billion", "1,500 million dollars"),
    ("$1.5bn", "$1,500,000,000"),
    ("12.50 euros", "€12.5"),
]
DIFFERENT = [
    ("1/2", "1/3"),
    (r"2\sqrt{3}", "3.6"),
    ("0.5", "0.53"),
    ("81418", "81419"),
    ("(1, 2]", "[1, 2]"),
    ("(3, 4)", "(4, 3)"),
    (r"\{1, 2\}", r"\{1, 3\}"),
    (r"\{1, 2\}", r"\{1, 2, 3\}"),
    ("x > 3", "x < 3"),
    (r"k\pi", r"2k\pi"),
    ("x + 1", "x + 2"),
    (r"2\sqrt{3}", r"3\sqrt{2}"),
    ("5 cm", "5 mm"),
    ("5 km", "5 miles"),
    ("44 cm", "0.45 m"),
    ("12.500 km", "13.600 km"),
    ("119", "120"),
    ("3.2 million", "320,000"),
    ("3.2 million", "3.2 billion"),
    ("3 million", "4,000,000"),
    ("8,636,817", "8 million"),
    ("12 thousand", "15,400"),
    ("$1.5 billion", "$1.5 million"),
    ("-2", "2"),
    (r"\infty", "5"),
    (r"(1, 2) \cup (3, 4)", r"(1, 2) \cup (3, 5)"),
]
OPEN = [
    ("5 cm", "5"),  # the unit may be given by the question
    ("50", "50%"),
    (r"\pi", "3.14"),  # rounded
    ("8,336,817", "8 million"),
    ("1/3", "0.3"),
    ("1/8", "13%"),
    ("1.78 m", "1.8 m"),
    (r"10\pi", "31"),
    ("6 feet", "1.8 m"),  # mostly rounded
    ("3 miles", "5 km"),
    ("1 ton", "1000 kg"),  # a ton of 907 or 1,000 kg
    ("3 million", "3"),  # where it is asked how many million
    ("3 million", "3,000"),
    ("12 thousand", "12,040"),
    ("12 thousand", "12,400"),
    ("2 million people", "2,000,000"),
    ("$5 million", "€5 million"),
    ("$5 m", "$5 million"),  # a unit, or a million
    ("5 pounds", "5 kg"),  # money, or a mass
    ("2,962 m", "2.962 m"),  # thousands as in German, or decimals
    ("2.962 m", "2.962 km"),
    ("2.962 m", "2,962 km"),
    ("€1.500", "€1500"),
    ("4,5 km", "4,50 km"),
    ("2018/19", "2018/2019"),  # a season
    ("1800s", "1890s"),  # a century holds a decade
    ("1960s", "60s"),
    ("5 - 10 km", "-5 km"),  # a range
    ("10-15 km", "12 km"),
    ("20-30%", "25%"),
    ("331,000,000", "331,002,651"),
    ("1914-1918", "-4"),  # years
    ("3-2", "1"),  # a score
    ("$3-1$", "2"),
    ("-500", "(500)"),  # as accountants write it
    ("(500.00) dollars", "500 dollars"),
    ("12/05/1990", "2.4"),
    ("B12", "B12"),  # names
    ("n/a", "a/n"),
    ("A", "B"),
    ("2(3)", "6"),  # a product, or a function
    ("1/2x", "x/2"),
    ("2k + 1", "2k - 1"),  # all odd numbers
    (r"\frac{\pi}{2} + n\pi", r"-\frac{\pi}{2} + n\pi"),
    (r"\sin^2 x + C", r"-\cos^2 x + C"),
    (r"6/p \sqrt{x}", r"\frac{6}{p}\sqrt{x}"),
    ("3,14", "3.14"),  # a list, or a decimal comma
    ("007", "7"),
    (r"\log 100", "2"),
    ("2, 1", "1, 2"),  # a sequence, or a set
    (r"90^\circ", "90"),
    ("i^2", "-1"),
    ("nine", "9"),
    ("5t", "5"),  # no unit of time
    (r"\pi r^2 h", r"\pi r^2"),
    (r"\frac{a}{b}c", r"\frac{a}{b}"),
    ("3x + 2s", "3x + 2"),
    ("$5", "€5"),
    ("¥5", r"\$5"),
    (r"\begin{vmatrix}1&2\\3&4\end{vmatrix}", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"),
    ("x > 1", "y > 1"),
    ("x = 1 or x = 2", "y = 1 or y = 2"),
    ("a_1 = 1, a_2 = 2", "a_1 = 2, a_2 = 1"),
    ("F_1 = 5, F_2 = 6", "6, 5"),
    ("m = 3, b = 4", "(3, 4)"),
    ("1, 2, 3, ...", "1, 2, 3"),
    ("0.333...", "0.333"),
    (r"\ln 2 \cdot 3", r"\ln 6"),  # a product in the logarithm, or behind it
    (r"\ln x / x", "0"),
    (r"\sin x \cdot y", r"\sin(xy)"),
    (r"\tan x", r"\sin x / \cos x"),
    (r"\ln{2} \cdot 3", r"\ln 6"),
    ("2³√5", "8√5"),  # a cube root, or a power
    ("(x > 1) and y < 2", "(1, 2)"),
    ("x = 1, x = 2, y = 3", "x = 3, x = 2, y = 1"),
    ("√3x", r"\sqrt{3x}"),
    (r"-\sqrt[3]{2}", r"\sqrt[3]{-2}"),
    ("(-1)^n", r"\cos(n\pi)"),  # for whole numbers
    (r"[1, 2] \cup [2, 3]", r"[1, 3] \cup [1, 2]"),
    (r"(-\infty, 1) \cup (0, \infty)", r"(-\infty, 2) \cup (0, \infty)"),
    ("x^1/2", r"\sqrt{x}"),
    ("2^3^2", "512"),
    ("e^2x", "e^{2x}"),
    (r"\frac123", "1/23"),
    ("", ""),
]
HOSTILE = [
    "9^{9^{9^{9^9}}}",
    "((9^{99})^{99})^{99}",
    "99999999999!",
    r"\sum_{k=1}^{999999999} k",
    r"\binom{99999999}{5000000}",
    r"\int_0^1 x^x dx",
    r"\exp(\exp(\exp(\exp(\exp(9)))))",
    "(" * 5000 + "1" + ")" * 5000,
    r"\frac{1}{" * 2000 + "1" + "}" * 2000,
    "9" * 100_000,
    "-" * 10_000 + "1",
    "1" + "+1" * 100_000,
    r"\begin{pmatrix}" + "1&" * 5000 + r"1\end{pmatrix}",
    "__import__('os').system('true')",
    "\x00\ud800",
    ",".join("(" * 50),
    "$" + "log_2" * 39 + "!$",
    "\\pi" + "|" * 95 + "x" + "|" * 95,
]


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [(*pair, same) for pairs, same in ((EQUAL, True), (DIFFERENT, False), (OPEN, None))
     for pair in pairs],
)  # fmt: skip
def test_pairs_either_way(one: str, other: str, is_same: bool | None) -> None:
    assert same_mathematics(one, other) is is_same
    assert same_mathematics(other, one) is is_same


def test_threads_agree() -> None:
    pairs = [*EQUAL, *DIFFERENT, *OPEN]
    expected = [_compared.__wrapped__(*pair) for pair in pairs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda pair: _compared.__wrapped__(*pair), pairs))
    assert found == expected


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20].encode("ascii", "replace"))
def test_hostile_texts_are_not_read(text: str) -> None:
    begun = process_time()
    assert same_mathematics(text, "1") is None
    assert same_mathematics("1", text) is None
    assert process_time() - begun < 5


@pytest.mark.parametrize("kind", list(KINDS))
def test_made_forms(kind: str) -> None:
    results: list[bool | None] = []
    for seed in range(2):
        problem = make_problem(Random(seed), kind, "en")
        [reference] = problem.references
        results += [same_mathematics(reference, form.shown) for form in problem.right]
        wrong = [form for forms in problem.wrong for form in forms]
        assert True not in {same_mathematics(reference, form.shown) for form in wrong}
    assert False not in results
    assert results.count(True) / len(results) > 0.85


@pytest.mark.parametrize("kind", ["number", "radical", "polynomial", "angle"])
def test_math_verify_agrees(kind: str) -> None:
    problem = make_problem(Random(7), kind, "en")
    forms = [form for form in problem.right if form.is_latex]
    wrong = [form for form in problem.wrong[0] if form.is_latex]
    gold = parse(f"${forms[0].text}$")
    for form, is_same in [*((form, True) for form in forms), *((form, False) for form in wrong)]:
        if same_mathematics(forms[0].shown, form.shown) is is_same:
            assert verify(gold, parse(form.shown)) is is_same


WORK = "First I double 3, which is 6.\nThen I add 1.\n\n"


COURTESIES = [
    " I hope it is correct.",
    " I hope this helps!",
    "\n\nHope that helps! 😊",
    "\n\nLet me know if you have any questions.",
    " If you have further questions, please ask. Have a nice day!",
    " Thank you for your patience!",
    "\n\nQ.E.D.",
    "\n\n希望对你有帮助！",
    "\n\n希望以上解答对您有所帮助。如有疑问，欢迎继续提问！",
    "\n如果你还有其他问题，请随时告诉我。",
    "谢谢！",
]
UNSURE = [
    r"$\boxed{6}$ or $\boxed{7}$",
    "Final answer: 6. The final answer is 7.",
    "The answer is 7. Let me know if you think it is 8.",
    "The answer is 7. If you need the other root, it is -7.",
    "The answer is 7. I hope it is not 8.",
    "The answer is 7. I hope it is correct, but I am not sure.",
    "He said: the final answer is 7. I hope it is correct.",
    "Final answer: they deny that the answer is 7.",
    "Thanks!",
    r"$\boxed{7}$, but I am not sure",
    r"\boxed{7} cm or more",
    r"\boxed{7} apples",
    "Answer: 7\nAnother answer is 8.",
    "The following is refuted: Answer: 7",
    "They deny it. He wrote: the answer is 7",
    "Towns:\n5\n6\n7",  # the last of a list
    "5\n\n7",
    "#2",  # a place, or a number
    "So:\n\n- 7",  # an item, or a negative number
    "Answer:\n- 7",
    r"$-\boxed{7}$",
    r"$2\boxed{7}$",
    r"$x \ne \boxed{7}$",
    r"$1/\boxed{7}$",
    r"$\log \boxed{7}$",
    r"It is minus $\boxed{7}$",
    r"It is more than \(\boxed{7}\).",
    r"并非$\boxed{7}$",
    r"是负$\boxed{7}$",
    r"两倍的$\boxed{7}$",
    r"错误答案：$\boxed{7}$",
    r"$\$\boxed{7}$",
    "It cannot be this one:\n\n7",
    "Is it this?\n\n7",
    "",
]


@pytest.mark.parametrize(
    ("response", "answer"),
    [
        ("7", "7"),
        (WORK + "**7**", "7"),
        (WORK + r"So it is $\boxed{7}$.", "7"),
        (WORK + "**Final Answer**\n\n\\[\n\\boxed{\\frac{7}{1}}\n\\]", r"\frac{7}{1}"),
        (WORK + "**Final Answer:** 7", "7"),
        (WORK + "### Answer\n7", "7"),
        (WORK + "#### 7", "7"),
        (WORK + "<answer>7</answer>", "7"),
        (WORK + "The final answer is 7. I hope it is correct.", "7"),
        ("Final Answer: The final answer is $7$. I hope it is correct.", "$7$"),
        ("### Final Answer\nThe answer is **7**.", "7"),
        ("先算 6。\n最终答案：答案是 7。", "7"),
        *((f"{WORK}The answer is 7.{closing}", "7") for closing in COURTESIES),
        *((rf"So it is $\boxed{{7}}$.{closing}", "7") for closing in COURTESIES),
        (WORK + r"\boxed{\text{B}}", "B"),
        ("先算 6。\n所以答案是：7。", "7"),
        ("先算 6。\n**最终答案：** 7", "7"),
        ("At first, the answer is 6? No.\nAnswer: 7", "7"),
        ("I get $\\boxed{6}$, which is wrong.\nAnswer: 7", "7"),
        ("Answer: 7\n\nTo check, I add again.\n\nAnswer: 7", "7"),
        (r"$\boxed{7}$ ... so $\boxed{ 7 }$", "7"),
        ("6. Wait, that is not right.\n\n7", "7"),
        (".7", ".7"),
        (WORK + "The answer is .7.", ".7"),
        (r"The larger root is $x = (\boxed{7})$", "7"),
        (r"Thus \[ \therefore\quad \boxed{7} \]", "7"),
        ("I add 1.\n\nBased on this analysis, the correct answer is:\n\nAnswer: 7", "7"),
        ("根据以上分析，正确答案是 7。", "7"),
        (WORK + r"It is \(\boxed{7}\) cm.", "7 cm"),
        (WORK + r"It is $\boxed{7}\text{ cm}$.", "7 cm"),
        (WORK + r"It is $\boxed{7}\%$.", r"7 \%"),
        ("Step 2: State the final answer\nI add 1. So the final answer is:\n7", "7"),
        (WORK + "It is $\\boxed{7}$.\n\nAnswer: 7", "7"),
        *((response, None) for response in UNSURE),
    ],
)
def test_final_answer(response: str, answer: str | None) -> None:
    assert final_answers(response) == (() if answer is None else (answer,))


@pytest.mark.parametrize(
    ("response", "answers"),
    [
        (r"$\boxed{6}$ and $\boxed{7}$", ("6", "7")),
        ("Answer: 6\n\nLet me check.\n\nAnswer: 7", ("6", "7")),
        ("So the answer is B. Perth.\n\nAnswer: B", ("B. Perth", "B")),
        ("It is $\\boxed{1/2}$.\n\n**Answer:** 0.5", ("1/2", "0.5")),
        ("It is $-\\boxed{7}$.\n\nAnswer: 7", ()),
    ],
)
def test_answers_given_more_than_once(response: str, answers: tuple[str, ...]) -> None:
    assert final_answers(response) == answers


def test_long_and_hostile_responses_take_linear_time() -> None:
    for text in (
        r"\boxed{" * 20_000,
        "Answer: " * 20_000,
        "final " * 40_000,
        "* _#" * 50_000,
        "Thanks. " * 20_000,
        "谢谢" * 50_000,
    ):
        final_answers(text)


def test_long_texts_are_not_kept() -> None:
    """Callers of a service choose how many there are."""
    num_kept = _compared.cache_info().currsize
    assert same_mathematics(f"1{' ' * 10_000}/2", "0.5") is None
    assert same_mathematics("0.5", "1/2" * 10_000) is None
    assert _compared.cache_info().currsize == num_kept
