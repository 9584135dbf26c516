"""The report, its curve of risk and its cautions, and the paper's figures beside it."""

import csv
import json
import time
from pathlib import Path

import numpy as np
import pytest

from data_prep.tables.examples import read_examples
from data_prep.tables.mapping import TableMapping
from evaluation.attacks.rows import Share, measure_share
from evaluation.attacks.run import attack_caution
from evaluation.metrics import UNSCORED
from evaluation.outcomes import Outcomes
from evaluation.report.evaluate import FILE, OwnShape, find_disagreements, write_disagreements
from evaluation.report.markdown import (
    JUDGES_IN_REPORTS,
    TABLE_4,
    TABLE_5,
    published_shares,
    render_markdown,
)
from evaluation.report.page import render_page
from evaluation.report.report import abstention, build_report, risk_coverage, write_report
from evaluation.report.screen import WIDTH, summary_lines
from evaluation.report.text import table_row, with_interval
from judging.tasks.hieval_ea import ERROR_TYPES
from judging.types import LabelledExample, Verdict
from tests.evaluation.made_up import (
    evaluation,
    example,
    report,
    scored,
    typed_records,
    unscored,
    untrained_mode_note,
)
from tests.evaluation.pairs.made_up import in_both_orders, pair
from tests.evaluation.people.made_up import several
from tests.evaluation.people.test_annotators import with_second
from tests.judging.tasks.made_up import Grounded, declare

ARCHITECTURE_KEYS = {
    "n", "coverage", "seconds", "items_per_second", "metrics", "per_class", "confusion", "slices",
    "baselines",
}  # fmt: skip
ARCHITECTURE_METRICS = {"accuracy", "kappa", "mcc", "macro_f1", "fpr", "ece", "brier", "nll"}


def test_keys_that_others_rely_on() -> None:
    made = report()
    assert made.keys() >= ARCHITECTURE_KEYS
    assert made["metrics"].keys() >= ARCHITECTURE_METRICS
    for measured in (made["metrics"], *made["baselines"].values()):
        for name in ARCHITECTURE_METRICS:
            assert measured[name].keys() >= {"value", "low", "high", "n"}
    assert all("p" in baseline for baseline in made["baselines"].values())
    assert json.loads(json.dumps(made, allow_nan=False)) == made


def test_baselines_are_tested_against_the_judge_on_items_both_scored() -> None:
    examples, _ = evaluation()
    right = [scored(item.label, id=item.id) for item in examples]
    wrong = [scored("Wrong" if i.label == "Correct" else "Correct", id=i.id) for i in examples]
    half = [unscored(v.id) if n % 2 else v for n, v in enumerate(wrong)]
    made = build_report(examples, right, seconds=1, command="", references={"other": half})
    other = made["baselines"]["other"]
    assert (other["judge_only_right"], other["baseline_only_right"]) == (90, 0)
    assert other["n_both_scored"] == 90
    assert other["p"] == pytest.approx(2 * 0.5**90)
    assert other["accuracy"]["value"] == 0
    containment = made["baselines"]["containment"]
    assert containment["accuracy"]["value"] == 1
    assert containment["p"] == 1
    assert made["baselines"]["majority_label"]["kappa"]["value"] == 0


def test_a_judge_without_confidences_has_no_calibration(tmp_path: Path) -> None:
    examples, verdicts = evaluation()
    bare = [Verdict(id=v.id, status="scored", label=v.label) for v in verdicts]
    made = build_report(examples, bare, seconds=1, command="")
    assert made["calibration"] is None
    assert made["metrics"]["ece"] == {"value": None, "low": None, "high": None, "n": 0}
    write_report(made, tmp_path)
    assert not (tmp_path / "reliability.png").exists()
    assert "## Calibration" not in (tmp_path / "report.md").read_text()


def test_written_report_is_whole(tmp_path: Path) -> None:
    made = report(dataset_sha256="ab" * 32)
    write_report(made, tmp_path / "deep" / "out")
    out = tmp_path / "deep" / "out"
    assert json.loads((out / "report.json").read_text()) == made
    page = (out / "report.md").read_text()
    accuracy = made["metrics"]["accuracy"]
    figure = f"{accuracy['value']:.3f} [{accuracy['low']:.3f}, {accuracy['high']:.3f}]"
    assert f"| Accuracy | {figure} | 160 |" in page
    assert "    custos eval x\n" in page
    assert "180 items on 60 questions (160 scored, 20 unparsed) in 9.0 s, 20.0 items/s." in page
    assert "abab" in page
    assert "nan" not in page.lower()
    drawn = ("confusion", "reliability", "risk_coverage", "ranking", "favour")
    pictures = {f"{name}.png" for name in drawn}
    for picture in pictures:
        assert (out / picture).read_bytes().startswith(b"\x89PNG")
        assert f"![{picture}]({picture})" in page
    assert {path.name for path in out.iterdir()} == {"report.json", "report.md", *pictures}


def test_pairs_are_reported_with_what_order_and_length_do(tmp_path: Path) -> None:
    rows = [("A", "A", "A", "A"), ("B", "A", "B", "B"), ("None", "A", "B", "None")] * 5
    examples = [
        pair(people, str(row), a="red" * (1 + row % 2), task="truthful-pair")
        for row, (people, *_) in enumerate(rows)
    ]
    verdicts = [in_both_orders(*row[1:], id=str(number)) for number, row in enumerate(rows)]
    made = build_report(examples, verdicts, seconds=1.0, command="custos eval x")
    assert made["pairs"]["measures"]["accuracy_ties_counted"]["value"] == 1.0
    assert made["pairs"]["order"]["flip_rate"]["value"] == pytest.approx(2 / 3)
    assert made["pairs"]["length"]["preference"]["value"] == 0.0
    write_report(made, tmp_path)
    page = (tmp_path / "report.md").read_text()
    assert "| Accuracy, both merged | 0.667 [" in page
    assert "| Pairs on which the two orders disagree | 0.667 [" in page
    assert "nan" not in page.lower()


def outcomes(confidence: list[float], right: list[bool]) -> Outcomes:
    """Verdicts on as many questions; one with a confidence of nan has no label."""
    n = len(right)
    human = np.zeros(n, dtype=np.int64)
    values = np.array(confidence)
    return Outcomes(
        labels=("Correct", "Wrong"),
        human=human,
        predicted=np.where(np.isnan(values), UNSCORED, np.where(right, 0, 1)),
        probabilities=np.full((n, 2), np.nan),
        confidence=values,
        clusters=np.arange(n),
    )


def test_the_curve_by_hand() -> None:
    curve = risk_coverage(outcomes([0.9, 0.6, 0.8, np.nan], [True, True, False, False]))
    assert curve is not None
    assert curve["n"] == 3
    np.testing.assert_allclose(curve["coverage"], [1 / 3, 2 / 3, 1])
    np.testing.assert_allclose(curve["error"], [0, 1 / 2, 1 / 3])
    assert curve["aurc"] == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)
    assert curve["aurc_best"] == pytest.approx((0 + 0 + 1 / 3) / 3)


@pytest.mark.parametrize(
    ("num_wrong", "level"), [(0, "not shown"), (2, "not shown"), (4, "not shown"), (40, "exceeded")]
)
def test_whether_the_level_holds(num_wrong: int, level: str) -> None:
    right = [False] * num_wrong + [True] * (100 - num_wrong) + [False] * 100
    review = np.arange(200) >= 100
    measured = abstention(outcomes([0.9] * 200, right), review, 0.03)
    assert measured["kept"]["value"] == 0.5
    assert measured["error"]["value"] == pytest.approx(num_wrong / 100)
    assert (measured["error"]["n"], measured["level"]) == (100, level)


def test_a_level_is_shown_by_the_upper_end() -> None:
    """A true error of .08 was called below .1 in half of all cases by the point alone."""
    right = [False] * 2 + [True] * 298
    measured = abstention(outcomes([0.9] * 300, right), np.zeros(300, dtype=bool), 0.03)
    assert measured["level"] == "shown" and measured["error"]["high"] < 0.03
    nothing = abstention(outcomes([0.9] * 300, right), np.ones(300, dtype=bool), 0.03)
    assert nothing["level"] == "nothing kept"


COUNTS = (260, 265, 100, 210, 165)
"""Responses of each error type in the paper's test."""


@pytest.mark.parametrize(
    "judge", sorted(set(TABLE_5) - {"Mimo-RL-7B"})
)  # whose row counts otherwise
def test_shares_of_the_types_give_the_share_of_all(judge: str) -> None:
    *by_type, overall = TABLE_5[judge]
    total = sum(count * share for count, share in zip(COUNTS, by_type, strict=True)) / sum(COUNTS)
    assert total == pytest.approx(overall, abs=0.06)


@pytest.mark.parametrize("judge", JUDGES_IN_REPORTS)
def test_reports_show_shares(judge: str) -> None:
    shares = published_shares(judge)
    assert list(shares) == [*ERROR_TYPES, "type_accuracy", "score_accuracy"]
    assert all(0 <= share <= 1 for share in shares.values())
    assert 100 * shares["type_accuracy"] == pytest.approx(TABLE_4[judge][2])
    assert 100 * shares["score_accuracy"] == pytest.approx(TABLE_4[judge][3])


def test_a_cell_from_outside_is_text() -> None:
    assert table_row(["a\\|b", "x\\", "one\r\ntwo"]) == "| a\\\\\\|b | x\\ | one two |"
    hostile = '<img src=x onerror="alert(1)"></td><!-- 1 < 2'
    shown = '| &lt;img src=x onerror="alert(1)">&lt;/td>&lt;!-- 1 < 2 |'
    assert table_row([hostile]) == shown
    assert table_row(["![x](http://a/b.png)"]) == "| ![x]&#40;http://a/b.png) |"
    assert table_row(["\x1b[31mred\u202e"]) == r"| \x1b[31mred\u202e |"
    assert table_row(["\\|\\\\|", "||"]) == r"| \\\|\\\\\| | \|\| |"


def test_a_run_of_backslashes_is_read_once() -> None:
    started = time.process_time()
    table_row(["\\" * 150_000])
    assert time.process_time() - started < 2


def test_names_from_outside_are_cells_of_the_page() -> None:
    examples, verdicts = evaluation(questions=10)
    names = ("items", "a|b", "keys")
    named = [
        example.model_copy(update={"metadata": {"domain": names[n % 3], "answerer": names[n % 3]}})
        for n, example in enumerate(examples)
    ]
    report = build_report(named, verdicts, seconds=0, command="custos eval x")
    page = render_markdown(report)
    assert "10 questions (30 scored) in 0.0 s.\n" in page
    for name in ("items", "a\\|b", "keys"):
        assert page.count(f"\n| {name} | 10 |") == 4  # domain, answerer, ranking, favour


def test_rows_without_a_label_are_in_the_figures_that_say_so() -> None:
    made = report()
    [text] = [text for text in made["cautions"] if "got no label" in text]
    assert text.startswith("20 of 180 rows got no label: they count in the coverage and in the")
    counted = {name for name, metric in made["metrics"].items() if metric["n"] == 180}
    assert counted == {"coverage", "accuracy_unscored_as_wrong"}


def test_verdicts_in_a_mode_that_was_not_trained_are_cautioned() -> None:
    """Read it from the message: of the judge of a service nothing else is known."""
    note = untrained_mode_note()
    examples = [example("Correct", id=str(number)) for number in range(30)]
    verdicts = [
        scored("Correct", id=str(number), message=note if number < 20 else None)
        for number in range(30)
    ]
    made = build_report(examples, verdicts, seconds=1, command="")
    assert made["untrained_mode"] == 20
    [text] = [text for text in made["cautions"] if "not trained for" in text]
    assert text.startswith("20 of 30 rows ask for a `mode`")


def test_rows_that_were_drawn_unequally_are_weighed_in_a_caution() -> None:
    """Twenty rows stand for 200 that the judge is sure of, and twenty for themselves."""
    examples, verdicts = [], []
    for number in range(40):
        chance, is_right = (1.0, number % 2 == 0) if number < 20 else (0.1, number % 10 > 0)
        fields = {"question": f"Question {number}?", "sampling_probability": chance}
        examples.append(example("Correct", id=str(number), **fields))
        verdicts.append(scored("Correct" if is_right else "Wrong", id=str(number)))
    made = build_report(examples, verdicts, seconds=1, command="")
    assert made["metrics"]["accuracy"]["value"] == pytest.approx(28 / 40)
    drawn = made["unequally_drawn"]
    assert (drawn["lowest"], drawn["highest"]) == (0.1, 1)
    assert drawn["accuracy"]["value"] == pytest.approx((10 + 180) / 220)
    assert any(with_interval(drawn["accuracy"]) in text for text in made["cautions"])
    alike = [row.model_copy(update={"sampling_probability": 0.1}) for row in examples]
    assert build_report(alike, verdicts, seconds=1, command="")["unequally_drawn"] is None


def test_rows_of_which_some_have_no_probability_are_not_weighed_without_a_word() -> None:
    examples, verdicts = evaluation(questions=20)
    examples[:50] = [row.model_copy(update={"sampling_probability": 0.2}) for row in examples[:50]]
    made = build_report(examples, verdicts, seconds=1, command="")
    assert made["unequally_drawn"] is None
    assert made["drawn_in_part"] == {"n": 50, "ids": ["50", "51", "52", "53", "54"]}
    [text] = [text for text in made["cautions"] if "sampling_probability" in text]
    assert text.startswith("50 of 60 rows") and "id 50, 51" in text


def answers_with_few_wrong(
    questions: int, wrong: int, answers: int
) -> tuple[list[LabelledExample], list[Verdict]]:
    """Right verdicts on equal responses, of which people call those to a few questions wrong.

    The regression has nothing to tell them by, and calls all of them Correct.
    """
    examples, verdicts = [], []
    for number in range(questions * answers):
        question = number // answers
        label = "Wrong" if question < wrong else "Correct"
        examples.append(example(label, id=str(number), question=f"Question {question}?"))
        verdicts.append(scored(label, id=str(number)))
    return examples, verdicts


def test_answers_to_one_question_are_no_proof_of_each_other() -> None:
    """Resample questions: the judge is ahead on two of twenty, with ten answers to each."""
    examples, verdicts = answers_with_few_wrong(questions=20, wrong=2, answers=10)
    made = build_report(examples, verdicts, seconds=1, command="")
    rival = made["baselines"]["logistic_overlap"]
    assert (rival["judge_only_right"], rival["baseline_only_right"]) == (20, 0)
    assert rival["p"] == 0.5  # two questions, both for the judge
    [caution] = [t for t in made["cautions"] if "not shown to beat a logistic regression" in t]
    assert rival["gain"]["value"] == pytest.approx(0.1) and rival["gain"]["low"] <= 0
    assert caution.endswith(f"less the regression's is {with_interval(rival['gain'])}.")


def shares(num_questions: int, num_searched: int) -> dict[str, Share]:
    hits = np.arange(num_questions) % 50 == 0
    searched = np.arange(num_searched) % 2 == 0
    return {
        "denial": measure_share(hits.tolist(), range(num_questions)),
        "search": measure_share(searched.tolist(), range(num_searched)),
    }


def test_a_search_on_few_answers_does_not_make_many_questions_too_few() -> None:
    caution = attack_caution(500, shares(500, 3))
    assert caution is not None
    assert caution.startswith("3 questions are too few to conclude: the share of 'search' may lie")
    assert attack_caution(500, shares(500, 400)) is None
    assert str(attack_caution(500, shares(500, 1))).startswith("1 question is too few to conclude")


@pytest.mark.parametrize("make", [evaluation, typed_records, with_second, several])
@pytest.mark.parametrize("name", ["qs", "a-judge-with-a-very-long-name" * 5, "[red]x\n\x1b[31m"])
def test_every_line_fits_80_columns(make: object, name: str) -> None:
    assert callable(make)
    examples, verdicts = make()
    seen = {"file": "trained on", "rows": 3}
    report = build_report(examples, verdicts, seconds=1, command="", seen=seen)
    lines = summary_lines(name, report, find_disagreements(examples, verdicts))
    assert max(map(len, lines)) <= WIDTH
    assert all(line.isprintable() for line in lines)
    assert any("trained on this very file" in line for line in lines)


@pytest.mark.parametrize(("questions", "is_wide"), [(8, True), (200, False)])
def test_too_few_rows_are_said_to_be_too_few(questions: int, is_wide: bool) -> None:
    report = build_report(*evaluation(questions=questions), seconds=1, command="")
    assert any("too few to conclude" in text for text in report["cautions"]) == is_wide
    accuracy = report["metrics"]["accuracy"]
    assert (accuracy["high"] - accuracy["low"] > 0.2) == is_wide


@pytest.mark.parametrize(("task", "is_there"), [("grounded", False), ("hieval-qs", True)])
def test_rates_of_labels_are_shown_where_there_are_such_labels(
    task: str, is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(monkeypatch)
    labels = Grounded.label_set if task == "grounded" else ("Correct", "Partial", "Wrong")
    rows = [
        example(labels[n % 3], id=str(n), question=f"q{n}", task=task, reference_mode="all")
        for n in range(30)
    ]
    verdicts = [scored(labels[n % 2], id=str(n)) for n in range(30)]
    measured = build_report(rows, verdicts, seconds=1, command="")
    disagreements = find_disagreements(rows, verdicts)
    for text in (render_markdown(measured), render_page(measured, disagreements, "x.csv")):
        assert ("Wrong called Correct" in text) is is_there
    words = dict(zip(labels, ("ganz", "halb", "nicht"), strict=True))
    lines = summary_lines("j", measured, disagreements, words.__getitem__)
    text = " ".join(line.strip() for line in lines)
    assert "halb 0.333" in text and "nicht 0.333" in text and "share of ganz" in text
    assert not any(label in text.partition("disagreements")[0] for label in labels[:2])


def test_no_id_or_message_commands_the_terminal() -> None:
    examples, verdicts = evaluation(questions=8)
    id = "7\x1b[2J"
    examples[0] = examples[0].model_copy(update={"id": id})
    verdicts[0] = Verdict(id=id, status="unparsed", message="the text '\x1b]0;x\x07' has no label")
    report = build_report(examples, verdicts, seconds=1, command="")
    lines = summary_lines("qs", report, find_disagreements(examples, verdicts))
    assert any("has no label (id 7 [2J)" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_criteria_are_shown_and_read_again(tmp_path: Path) -> None:
    """Without them nobody could say who is right."""
    fields = {"question": "", "references": (), "criteria": ("is short", "is polite")}
    row = example("Pass", id="0", task="criterion", **fields)
    write_disagreements(tmp_path, find_disagreements([row], [scored("Fail", id="0")]))
    with (tmp_path / FILE).open(encoding="utf-8", newline="") as file:
        [written] = csv.DictReader(file)
    assert written["criteria"] == "is short; is polite"
    [(_, again)] = read_examples(tmp_path / FILE, TableMapping(task="criterion"))
    assert (again.question, again.criteria) == ("", row.criteria)


def test_disagreements_are_in_the_words_and_columns_of_their_table(tmp_path: Path) -> None:
    columns = {"references": "Lösung", "label": "Urteil", "metadata.answerer": "System"}
    words = {"richtig": "Correct", "falsch": "Wrong"}
    mapping = TableMapping(columns=columns, labels=words, separator="|", reference_mode="any")
    fields = {"references": ("Rot; Rosa", "Rosé"), "metadata": {"answerer": "alpha"}}
    row = example("Wrong", id="0", **fields)
    ours = {label: word for word, label in words.items()}
    shape = OwnShape(columns, lambda label: ours.get(label, label), ";", "| ")
    write_disagreements(tmp_path, find_disagreements([row], [scored("Correct", id="0")]), shape)
    with (tmp_path / FILE).open(encoding="utf-8-sig", newline="") as file:
        [written] = csv.DictReader(file, delimiter=";")
    assert (written["Urteil"], written["judge_label"]) == ("falsch", "richtig")
    assert (written["Lösung"], written["System"]) == ("Rot; Rosa| Rosé", "alpha")
    [(_, again)] = read_examples(tmp_path / FILE, mapping)
    assert (again.label, again.references, again.metadata["answerer"]) == (
        ("Wrong", row.references, "alpha")
    )


def test_no_column_of_disagreements_takes_the_name_of_a_mapped_one(tmp_path: Path) -> None:
    verdict = scored("Correct", id="0").model_copy(update={"judge_name": "qs"})
    shape = OwnShape({"label": "judge"})
    write_disagreements(tmp_path, find_disagreements([example("Wrong", id="0")], [verdict]), shape)
    with (tmp_path / FILE).open(encoding="utf-8-sig", newline="") as file:
        header, written = csv.reader(file)
    assert header.count("judge") == 1 and written[header.index("judge")] == "Wrong"
