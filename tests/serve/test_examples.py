"""Examples that the judges of a service take."""

from judging import JudgeRequest, Verdict
from judging.judge.card import SHIPPED
from judging.tasks import get_task, task_names
from serve.examples import (
    headline_example,
    headline_judge,
    known_choices,
    task_example,
    warm_up,
)
from tests.serve.made_up import FakeJudge, card_of


class RememberingJudge(FakeJudge):
    def __init__(self, name: str = "fake", tasks: tuple[str, ...] = ()) -> None:
        super().__init__(name, tasks)
        self.requests: list[JudgeRequest] = []

    def verdict_on(self, request: JudgeRequest, confidence: float) -> Verdict:
        self.requests.append(request)
        return super().verdict_on(request, confidence)


def trained(name: str, **tasks: tuple[str, ...]) -> FakeJudge:
    """A judge that was trained for some rubrics; ``hieval_qs`` stands for ``hieval-qs``."""
    rubrics = {task.replace("_", "-"): known for task, known in tasks.items()}
    judge = FakeJudge(name, tuple(rubrics))
    judge.card = card_of(rubrics)
    return judge


def test_an_example_is_of_a_rubric_that_a_judge_knows() -> None:
    task = get_task("hieval-qs")
    assert task_example(task, [trained("a", hieval_qs=("plain/any",))]) == task.example_row()
    row = task_example(task, [trained("a", hieval_qs=("tolerance/all",))])
    assert (row["variant"], row["reference_mode"]) == ("tolerance", "all")
    assert task_example(task, [FakeJudge()]) == task.example_row()
    assert task_example(task, []) == task.example_row()
    without = task_example(get_task("truthful-pair"), [trained("p", truthful_pair=("plain",))])
    assert "references" not in without


def test_the_headline_judge_is_who_grades_a_request_that_names_nothing() -> None:
    pairs = trained("pairs", truthful_pair=("plain", "reference"))
    other = trained("other", hieval_ea=("plain/all",), hieval_qs=("plain/all",))
    headline = trained("headline", hieval_qs=("plain/any",))
    judges = {"pairs": pairs, "other": other, "headline": headline}
    assert headline_judge(judges) == "headline"
    assert headline_example(judges)["task"] == "hieval-qs"
    assert headline_judge({"pairs": pairs}) == "pairs"
    assert headline_example({"pairs": pairs})["task"] == "truthful-pair"


def test_the_headline_example_is_of_a_task_that_the_judge_was_measured_on() -> None:
    judge = trained("ea", hieval_qs=("plain/all",), hieval_ea=("plain/all",))
    assert headline_example({"ea": judge})["task"] == "hieval-qs", "nothing was measured"
    judge.folder = SHIPPED / "embedded-ea"
    assert headline_example({"ea": judge})["task"] == "hieval-ea"


def test_a_warm_up_is_one_request_of_a_task_that_the_judge_takes() -> None:
    for name in task_names():
        judge = RememberingJudge(tasks=(name,))
        warm_up(judge)
        assert [request.task for request in judge.requests] == [name]


def test_choices_are_those_that_the_judge_was_trained_for() -> None:
    task = get_task("hieval-qs")
    narrow = trained("a", hieval_qs=("plain/all", "tolerance/any"))
    assert known_choices(task, narrow) == [
        {"variant": "plain", "reference_mode": "all"},
        {"variant": "tolerance", "reference_mode": "any"},
    ]
    assert len(known_choices(task, FakeJudge())) == 4
    with_reference = trained("p", truthful_pair=("reference",))
    assert len(known_choices(get_task("truthful-pair"), with_reference)) == 2
    one_kind = trained("c", charthal=("irrelevant",))
    assert {choice["variant"] for choice in known_choices(get_task("charthal"), one_kind)} == {
        "irrelevant"
    }
