"""Judges of one backbone share the weights that their adapters do not change."""

import torch

from cli.shared.judges import share_weights
from judging.judge import Judge
from judging.types import JudgeRequest
from tests.serve.made_up import row


def parameters(judge: Judge) -> dict[str, torch.nn.Parameter]:
    model = getattr(judge.engine, "model", None)
    assert isinstance(model, torch.nn.Module)
    return dict(model.named_parameters())


def test_equal_weights_are_kept_once_and_verdicts_stay(tiny_folder: str) -> None:
    first, second = (Judge.load(tiny_folder, device="cpu") for _ in range(2))
    request = JudgeRequest.model_validate(row())
    before = list(second.grade([request]))
    changed = parameters(second)
    name = next(name for name in changed if name.endswith("q_proj.weight"))
    changed[name].data += 1
    expected = list(second.grade([request]))
    assert expected != before

    share_weights([first, second])
    assert list(second.grade([request])) == expected
    assert list(first.grade([request])) == before
    shared = parameters(first)
    assert {key for key in changed if changed[key].data_ptr() != shared[key].data_ptr()} == {name}
