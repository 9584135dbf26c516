import pytest

from evaluation.comparisons.compare import compare_evaluations
from evaluation.declared_labels import check_labels, label_set
from evaluation.outcomes import save_evaluation
from evaluation.report.report import build_report
from judging.errors import CustosError, FieldError
from judging.types import LabelledExample
from tests.evaluation.made_up import evaluation, example, scored


def labelled(*labels: str, **fields: object) -> list[LabelledExample]:
    return [example(label, id=str(i), **fields) for i, label in enumerate(labels)]


def test_declared_labels_pass() -> None:
    check_labels(labelled("Correct", "Partial", "Wrong", reference_mode="all"))
    check_labels(labelled("Correct", "Wrong", reference_mode="any"))
    check_labels(labelled("Correct", "Wrong; Reasoning Error", task="hieval-ea"))
    check_labels(labelled("Wrong", task="hieval-ea", error_type="Other"))
    check_labels([])


def test_the_error_counts_every_label_and_gives_the_option_to_copy() -> None:
    examples = labelled("Correct", "right", "wrong", "right", reference_mode="any")
    with pytest.raises(CustosError) as caught:
        check_labels(examples, "test.csv", lambda index: f"row {index + 2}")
    assert str(caught.value) == (
        "test.csv: field 'label': hieval-qs/plain/any does not declare 'right' (2 rows, the first "
        "is row 3), 'wrong' (1 row, the first is row 4); it declares Correct, Wrong; translate "
        "them: --labels right=Correct,wrong=Wrong"
    )


def test_any_has_no_partial() -> None:
    with pytest.raises(CustosError) as caught:
        check_labels(labelled("Partial", "partly", "Correct", reference_mode="any"))
    message = str(caught.value)
    assert "hieval-qs/plain/any does not declare 'Partial' (1 row, the first is row 1)" in message
    assert "--labels 'Partial=?,partly=?'" in message
    assert "--reference-mode all" in message


def test_error_types_where_the_task_names_none_and_scores_where_it_names_some() -> None:
    with pytest.raises(CustosError, match="'Wrong; Reasoning Error'.*leave the error types out"):
        check_labels(labelled("Wrong; Reasoning Error"))
    with pytest.raises(CustosError, match="'Wrong; Other'.*leave the error types out"):
        check_labels(labelled("Wrong", error_type="Other"))
    with pytest.raises(CustosError) as caught:
        check_labels(labelled("Wrong", "Wrong; Laziness", task="hieval-ea"))
    assert "it declares Correct, Partial; Reasoning Error," in str(caught.value)
    assert "--labels 'Wrong=?,Wrong; Laziness=?'" in str(caught.value)


def test_every_rubric_and_column_is_named() -> None:
    examples = [
        *labelled("yes", reference_mode="any", second_label="no"),
        *labelled("yes", reference_mode="all", second_label="Wrong"),
    ]
    with pytest.raises(CustosError) as caught:
        check_labels(examples)
    message = str(caught.value)
    assert "field 'label': hieval-qs/plain/any does not declare 'yes' (1 row" in message
    assert "field 'label': hieval-qs/plain/all does not declare 'yes' (1 row" in message
    assert "field 'second_label': hieval-qs/plain/any does not declare 'no' (1 row" in message
    assert message.endswith("translate them: --labels yes=Correct,no=Wrong")


def test_free_text_instead_of_labels_stays_one_readable_error() -> None:
    examples = labelled(*(f"opinion {i} " + "x" * 10_000 + "\n" for i in range(500)))
    with pytest.raises(CustosError) as caught:
        check_labels(examples)
    message = str(caught.value)
    assert len(message) < 3000
    assert "and 480 other labels" in message
    assert message.endswith("translate them under 'labels' in a file for --mapping")


def test_an_unknown_task_is_named_with_its_row() -> None:
    with pytest.raises(FieldError, match="row 1: field 'task': 'elsewhere' is not one of"):
        check_labels(labelled("Wrong", task="elsewhere"))


def test_reports_and_comparisons_refuse_too() -> None:
    examples = labelled("right", "wrong", "right")
    verdicts = [scored("Correct", id=row.id) for row in examples]
    for refuse in (
        lambda: build_report(examples, verdicts, seconds=1, command=""),
        lambda: label_set(examples, verdicts),
    ):
        with pytest.raises(CustosError, match="--labels right=Correct,wrong=Wrong"):
            refuse()


def test_compare_names_the_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    a, b = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    examples, verdicts = evaluation()
    examples = [row.model_copy(update={"label": row.label.lower()}) for row in examples]
    save_evaluation(a, examples, verdicts)
    save_evaluation(b, examples, verdicts)
    with pytest.raises(CustosError) as caught:
        compare_evaluations(a, b)
    assert str(a) in str(caught.value)
    assert "--labels wrong=Wrong,correct=Correct" in str(caught.value)
