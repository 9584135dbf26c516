from __future__ import annotations

import pytest
import torch

from experiments.cost import tree_step as tree_cost
from judging.scoring.tree_batch import TreeModel, label_logprobs, make_tree_batch


@pytest.mark.parametrize("side", [None, 8])
def test_what_is_compared_is_the_same(side: int | None) -> None:
    model, tree = tree_cost._model(), tree_cost._tree()
    prompt = tree_cost._prompt(model, side)
    with torch.inference_mode():
        together = label_logprobs(TreeModel(model)(make_tree_batch([prompt], [tree], 0)), tree)[0]
        apart = tree_cost._apart(model, prompt, tree, len(tree.labels))
    assert len(tree.labels) == 11
    torch.testing.assert_close(together, apart, rtol=0, atol=1e-4)
    assert together.std() > 0.01
