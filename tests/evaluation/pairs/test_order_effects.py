import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from evaluation.pairs.agreement import PAIR_LABELS, mapped_back, order_effects, preferred
from judging.types import Pass
from tests.evaluation.pairs.made_up import OTHER, in_both_orders, judged, pair, sure

label = st.sampled_from(PAIR_LABELS)
# People; the judge in the given order, in the swapped one (own letters), and its verdict.
fourfold = st.lists(st.tuples(label, label, label, label), min_size=1, max_size=20)
Fourfold = list[tuple[str, str, str, str]]


def effects(rows: Fourfold, surer: float = 0.8) -> dict[str, object]:
    return order_effects(
        [pair(row[0], str(i)) for i, row in enumerate(rows)],
        [in_both_orders(*row[1:], id=str(i), surer=surer) for i, row in enumerate(rows)],
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
    assert found["test"] == {"only_given_right": 1, "only_merged_right": 2, "p": 1.0}


def test_what_calibration_moves_is_not_put_down_to_the_second_order() -> None:
    found = effects([("B", "A", "A", "B")] * 10)  # calibration alone made the verdicts right
    assert value(found, "accuracy", "merged") == value(found, "accuracy", "given") == 0
    assert value(found, "merged_minus_given") == 0
    assert found["test"] == {"only_given_right": 0, "only_merged_right": 0, "p": 1.0}


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
    split = found["test"]
    assert isinstance(split, dict)
    gain = (split["only_merged_right"] - split["only_given_right"]) / len(rows)
    assert value(found, "merged_minus_given") == pytest.approx(gain)
    changed = split["only_given_right"] + split["only_merged_right"]
    expected = binomtest(split["only_given_right"], changed).pvalue if changed else 1
    assert split["p"] == pytest.approx(expected)  # every pair is its own question


def test_one_order_alone_still_has_a_bias() -> None:
    one_pass = (Pass(order="given", posterior=sure("A")),)
    verdicts = [
        judged("A", "0").model_copy(update={"passes": one_pass}),
        in_both_orders("B", "B", "B", "1"),
        in_both_orders("A", "A", None, "2"),
        judged(None, "3"),
    ]
    found = order_effects([pair("B", str(i)) for i in range(4)], verdicts)
    bias, flips = found["bias"], found["flip_rate"]
    assert [bias[name]["n"] for name in ("given", "swapped", "both")] == [3, 2, 2]
    assert flips["n"] == 2
    assert bias["given"]["value"] == pytest.approx(2 / 3)
