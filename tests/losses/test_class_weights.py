import math

import pytest
import torch

from losses import class_weights


def test_hand_derived_weights() -> None:
    # N = 1 + 4 + 4 = 9; w = sqrt(9/1), sqrt(9/4), sqrt(9/4) = 3, 1.5, 1.5; mean = 2;
    # alpha = 1.5, 0.75, 0.75.
    weights = class_weights({"Partial": 1, "Correct": 4, "Wrong": 4})
    assert weights.tolist() == [1.5, 0.75, 0.75]
    assert weights.dtype == torch.float32


def test_mapping_and_sequence_agree_and_keep_their_order() -> None:
    assert class_weights({"b": 4, "a": 1}).tolist() == class_weights([4, 1]).tolist()
    # w = sqrt(5/4), sqrt(5): a ratio of two; mean one, so 2/3 and 4/3.
    assert class_weights([4, 1]).tolist() == pytest.approx([2 / 3, 4 / 3], rel=1e-6)


def test_equal_counts_and_a_single_class_weigh_one() -> None:
    assert class_weights([7, 7, 7]).tolist() == [1.0, 1.0, 1.0]
    assert class_weights([12]).tolist() == [1.0]


def test_clip_cuts_what_exceeds_it_and_nothing_else() -> None:
    # Unclipped 1.5, 0.75, 0.75 (above); the mean is taken before the clip.
    assert class_weights([1, 4, 4], t_max=1.2).tolist() == pytest.approx([1.2, 0.75, 0.75])


def test_the_papers_limit_cannot_bind_with_three_classes() -> None:
    # w_c / mean < number of classes, however rare a class: here w = 10^5, 1, 1.
    weights = class_weights([1, 10**10, 10**10])
    assert weights.max() < 3
    assert torch.equal(weights, class_weights([1, 10**10, 10**10], t_max=math.inf))


def test_the_papers_limit_binds_with_six_classes() -> None:
    # w = 10^5 x sqrt(5), then five of about sqrt(0.2) each: nearly 6 before the clip.
    weights = class_weights([1, *[10**10] * 5])
    assert weights[0] == 5.0
    assert weights[1:].max() < 1e-4


def test_zero_count_names_the_class() -> None:
    with pytest.raises(ValueError, match=r"class 'Partial' has 0 training examples"):
        class_weights({"Correct": 3, "Partial": 0, "Wrong": 5})


def test_no_classes() -> None:
    with pytest.raises(ValueError, match="at least one class"):
        class_weights([])
