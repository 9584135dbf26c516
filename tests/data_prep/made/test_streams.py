"""What the streams of all makers promise."""

from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from data_prep.made.benchmark_answers import generate_benchmark_answers
from data_prep.made.charts.rows import draw_pictures, plan_rows, plan_twins
from data_prep.made.claims import generate_claims
from data_prep.made.criterion import generate_criteria
from data_prep.made.objective import generate_objective
from data_prep.made.pairs import generate_pairs
from data_prep.made.quick_scores import generate_examples
from experiments.vision.pictures import draw_captioned
from judging.tasks import get_task
from judging.types import LabelledExample

MAKERS: dict[str, Callable[[int, int], Iterator[LabelledExample]]] = {
    "quick": lambda count, seed: generate_examples(count, seed, "all"),
    "open": lambda count, seed: generate_examples(count, seed, "train", "open"),
    "claims": lambda count, seed: generate_claims(count, seed, held_out=False),
    "tested claims": lambda count, seed: generate_claims(count, seed, held_out=True),
    "criterion": lambda count, seed: generate_criteria(count, seed, held_out=False),
    "objective": lambda count, seed: generate_objective(count, seed, held_out=False),
    "answers": lambda count, seed: generate_benchmark_answers(count, seed, "train"),
    "tested answers": lambda count, seed: generate_benchmark_answers(count, seed, "test"),
    "charts": lambda count, seed: (row.example for row in plan_rows(count, seed, "train")),
    "twins": lambda count, seed: (row.example for row in plan_twins(count, seed, "all")),
    "pairs": lambda count, seed: (row.pair for row in generate_pairs(count, seed, "test", 0.0)),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_rows_depend_on_the_seed_and_their_number_alone(maker: str) -> None:
    make = MAKERS[maker]
    rows = list(make(61, 7))
    assert list(make(61, 7)) == rows
    assert list(make(18, 7)) == rows[:18]
    assert not {row.question for row in make(61, 8)} >= {row.question for row in rows}
    assert len(list(islice(make(10**12, 0), 5))) == 5, "rows are drawn one by one"
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        task = get_task(row.task)
        task.check(row)
        task.target(row)


def test_pictures_repeat() -> None:
    first, again = (list(draw_pictures(plan_rows(8, 7, "all"))) for _ in range(2))
    assert first == again
    pairs = [list(generate_pairs(10, 8, "test", 0.3)) for _ in range(2)]
    assert pairs[0] == pairs[1]
    assert any(row.png for row in pairs[0])
    pictures = [draw_captioned(3, number) for number in (0, 0, 1)]
    assert pictures[0] == pictures[1] != pictures[2]
