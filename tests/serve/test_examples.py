"""Examples that the judges of a service take."""

from judging import JudgeRequest, Verdict
from judging.card import JudgeCard
from judging.tasks import get_task, task_names
from serve.examples import headline_example, headline_judge, task_example, warm_up
from tests.serve.made_up import FakeJudge


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
    judge.card = JudgeCard(backbone="none", backbone_version="none", tasks=rubrics, instructions={})
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


def test_a_warm_up_is_one_request_of_a_task_that_the_judge_takes() -> None:
    for name in task_names():
        judge = RememberingJudge(tasks=(name,))
        warm_up(judge)
        assert [request.task for request in judge.requests] == [name]
