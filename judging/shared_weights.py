"""Memory that judges of the same backbone share."""

from __future__ import annotations

from collections.abc import Iterable

from judging.judge import Judge


def share_weights(judges: Iterable[Judge]) -> None:
    """Let judges use one tensor where their weights are equal; verdicts stay as they are.

    An adapter is merged into the matrices that it was trained on. Embeddings, norms and the vision
    tower stay the backbone's; these are the weights that judges have in common.
    """
    import torch

    first_parameters: dict[tuple[str, str, str], torch.nn.Parameter] = {}
    for judge in judges:
        model = getattr(judge.engine, "model", None)
        if not isinstance(model, torch.nn.Module):  # the model runs on a server
            continue
        for name, parameter in model.named_parameters():
            key = (judge.backbone.name, judge.backbone.version, name)
            first = first_parameters.setdefault(key, parameter)
            is_shared = first.data_ptr() == parameter.data_ptr()
            is_alike = first.dtype == parameter.dtype and first.device == parameter.device
            if not is_shared and is_alike and torch.equal(first, parameter):
                parameter.data = first.data
