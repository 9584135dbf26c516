import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.intervals import mcnemar_p
from evaluation.pairs.agreement import PAIR_LABELS
from evaluation.pairs.position import mapped_back, order_effects, preferred, verbosity_effect
from judging.types import Pass
from tests.evaluation.made_up_pairs import OTHER, in_both_orders, judged, pair, sure

label = st.sampled_from(PAIR_LABELS)
# People; the judge in the given order, in the swapped one (own letters), and its verdict.
fourfold = st.lists(st.tuples(label, label, label, label), min_size=1, max_size=20)
Fourfold = list[tuple[str, str, str, str]]


def effects(rows: Fourfold, resamples: int = 20, surer: float = 0.8) -> dict[str, object]:
    return order_effects(
        [pair(row[0], str(i)) for i, row in enumerate(rows)],
        [in_both_orders(*row[1:], id=str(i), surer=surer) for i, row in enumerate(rows)],
        resamples,
    )


def value(found: dict[str, object], *path: str) -> float:
    here: object = found
    for name in (*path, "value"):
        assert isinstance(here, dict)
        here = here[name]
    assert isinstance(here, float)
    return here


def test_a_swapped_pass_speaks_of_what_it_was_shown() -> None:
    posterior = {"A": 0.7, "B": 0.2, "None": 0.1}
    assert mapped_back(Pass(posterior=posterior)) == posterior
    swapped = mapped_back(Pass(order="swapped", posterior=posterior))
    assert swapped == {"B": 0.7, "A": 0.2, "None": 0.1}


def test_equal_probabilities_favour_neither() -> None:
    assert [preferred(p) for p in ({"A": 0.5, "B": 0.5}, {"A": 0.4, "B": 0.2, "None": 0.4})] == [
        2,
        2,
    ]
    assert [preferred(sure(name)) for name in PAIR_LABELS] == [0, 1, 2]


def test_by_hand() -> None:
    found = effects(
        [
            ("A", "A", "A", "A"),
            ("B", "A", "B", "B"),  # took the first both times
            ("B", "A", "B", "None"),
            ("None", "None", "B", "None"),
            ("A", "B", "B", "B"),  # wrong, but not by position
        ],
        surer=0.9,  # so the swapped order decides
    )
    assert value(found, "flip_rate") == pytest.approx(3 / 5)
    assert value(found, "accuracy", "given") == pytest.approx(2 / 5)
    assert value(found, "accuracy", "swapped") == pytest.approx(3 / 5)
    assert value(found, "accuracy", "merged") == pytest.approx(3 / 5)
    assert value(found, "merged_minus_given") == pytest.approx(1 / 5)
    # A's credit by the judge, given 1 1 1 .5 0, swapped 1 0 0 0 0; by people 1 0 0 .5 1.
    assert value(found, "bias", "given") == pytest.approx((3.5 - 2.5) / 5)
    assert value(found, "bias", "swapped") == pytest.approx((2.5 - 1) / 5)
    assert value(found, "bias", "both") == pytest.approx((3.5 - 1) / 10)
    assert found["mcnemar"] == {"only_given_right": 1, "only_merged_right": 2, "p": 1.0}


def test_what_calibration_moves_is_not_put_down_to_the_second_order() -> None:
    found = effects([("B", "A", "A", "B")] * 10)  # calibration alone made the verdicts right
    assert value(found, "accuracy", "merged") == value(found, "accuracy", "given") == 0
    assert value(found, "merged_minus_given") == 0
    assert found["mcnemar"] == {"only_given_right": 0, "only_merged_right": 0, "p": 1.0}


def test_orders_that_contradict_each_other_merge_to_a_tie() -> None:
    found = effects([("None", "A", "B", "None"), ("A", "A", "B", "A")])
    assert value(found, "accuracy", "merged") == 0.5


def test_a_judge_that_always_takes_the_first() -> None:
    rows = [(human, "A", "B", "None") for human in ("A", "B") * 100]
    found = effects(rows)
    assert value(found, "bias", "both") == value(found, "bias", "given") == 0.5
    assert value(found, "flip_rate") == 1


def test_peoples_own_preference_is_no_bias() -> None:
    found = effects([("A", "A", "A", "A")] * 9 + [("B", "B", "B", "B")])
    for order in ("given", "swapped", "both"):
        assert value(found, "bias", order) == 0


@given(fourfold)
def test_pairs_turned_round_swap_the_two_orders(rows: Fourfold) -> None:
    """The given order of the turned pair shows what the swapped order of the pair showed."""
    found = effects(rows)
    turned = effects([(OTHER[h], OTHER[s], OTHER[g], OTHER[m]) for h, g, s, m in rows])
    assert value(turned, "flip_rate") == value(found, "flip_rate")
    assert value(turned, "accuracy", "merged") == value(found, "accuracy", "merged")
    for one, other in (("given", "swapped"), ("swapped", "given")):
        assert value(turned, "accuracy", one) == value(found, "accuracy", other)
        assert value(turned, "bias", one) == pytest.approx(value(found, "bias", other))
    assert value(turned, "bias", "both") == pytest.approx(value(found, "bias", "both"))


@given(fourfold)
def test_mcnemar_counts_what_accuracies_differ_by(rows: Fourfold) -> None:
    found = effects(rows)
    split = found["mcnemar"]
    assert isinstance(split, dict)
    gain = (split["only_merged_right"] - split["only_given_right"]) / len(rows)
    assert value(found, "merged_minus_given") == pytest.approx(gain)
    assert split["p"] == mcnemar_p(split["only_given_right"], split["only_merged_right"])


def test_one_order_alone_still_has_a_bias() -> None:
    one_pass = (Pass(order="given", posterior=sure("A")),)
    verdicts = [
        judged("A", "0").model_copy(update={"passes": one_pass}),
        in_both_orders("B", "B", "B", "1"),
        in_both_orders("A", "A", None, "2"),
        judged(None, "3"),
    ]
    found = order_effects([pair("B", str(i)) for i in range(4)], verdicts, resamples=20)
    bias, flips = found["bias"], found["flip_rate"]
    assert [bias[name]["n"] for name in ("given", "swapped", "both")] == [3, 2, 2]
    assert flips["n"] == 2
    assert bias["given"]["value"] == pytest.approx(2 / 3)


def test_verbosity_by_hand() -> None:
    # People, judge, lengths of A and B.
    rows = [
        ("A", "B", 2, 9),  # people shorter, judge longer
        ("B", "B", 9, 2),  # both shorter
        ("A", "None", 2, 9),  # people shorter, judge tie
        ("A", "B", 9, 2),  # people longer, judge shorter
        ("B", "B", 2, 9),  # both longer
        ("A", "A", 9, 2),  # both longer
        ("None", "A", 9, 2),  # people tie, judge longer
        ("A", "B", 5, 5),  # same length
    ]
    examples = [
        pair(human, str(i), a="x" * a + " ", b="y" * b) for i, (human, _, a, b) in enumerate(rows)
    ]
    verdicts = [judged(row[1], str(i)) for i, row in enumerate(rows)]
    found = verbosity_effect(examples, verdicts, resamples=100)
    summary = {name: (row["value"], row["n"]) for name, row in found.items()}
    assert summary == {
        "preference": (pytest.approx((4.5 - 3.5) / 7), 7),
        "longer_against_people": (pytest.approx(1 / 3), 3),
        "shorter_against_people": (pytest.approx(1 / 3), 3),
        "difference": (pytest.approx(0), 6),
    }


def test_a_judge_that_loves_length_is_found_out() -> None:
    rng = np.random.default_rng(0)
    examples, verdicts = [], []
    for i in range(400):
        a, b = rng.choice(50, size=2, replace=False) + 1
        examples.append(pair("A" if rng.random() < 0.5 else "B", str(i), a="x" * a, b="y" * b))
        longer = "A" if a > b else "B"
        verdicts.append(judged(longer if rng.random() < 0.3 else examples[-1].label, str(i)))
    found = verbosity_effect(examples, verdicts)
    assert found["preference"]["low"] > 0.08
    assert found["difference"]["low"] > 0.2
    assert found["shorter_against_people"]["value"] == 0
    fair = verbosity_effect(examples, [judged(x.label, x.id) for x in examples])
    assert fair["preference"]["value"] == fair["difference"]["value"] == 0


@given(st.lists(st.tuples(label, label, st.integers(1, 9), st.integers(1, 9)), min_size=1))
def test_verbosity_does_not_care_which_side_is_long(
    rows: list[tuple[str, str, int, int]],
) -> None:
    def measured(rows: list[tuple[str, str, int, int]]) -> list[float]:
        examples = [pair(h, str(i), a="x" * a, b="y" * b) for i, (h, _, a, b) in enumerate(rows)]
        verdicts = [judged(row[1], str(i)) for i, row in enumerate(rows)]
        found = verbosity_effect(examples, verdicts, resamples=5)
        return [row["value"] for row in found.values()]

    turned = [(OTHER[human], OTHER[judge], b, a) for human, judge, a, b in rows]
    assert measured(turned) == pytest.approx(measured(rows), nan_ok=True)
