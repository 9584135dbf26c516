"""Memory that judges of the same backbone share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from judging.judge import Judge
from judging.models.backbones import load_backbone
from judging.models.embedded import EMBEDDED

if TYPE_CHECKING:
    from judging.scoring.engine import Engine, TextBatch


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


class EngineOnUse:
    """The engine of the untrained embedded backbone, which is loaded when it is first used.

    Args:
        judges: Judges whose weights it shares where they are equal.
    """

    posterior: Literal["exact"] = "exact"

    def __init__(self, judges: Iterable[Judge]) -> None:
        self._judges = tuple(judges)

    @cached_property
    def _engine(self) -> Engine:
        judge = Judge.load(EMBEDDED, device="cpu")
        share_weights([*self._judges, judge])
        return judge.engine

    @property
    def numerics(self) -> dict[str, str]:
        """Return what the loaded engine will say."""
        return {"dtype": "bfloat16", "engine": "tree", "positions": "float32"}

    @property
    def location(self) -> dict[str, str]:
        """Return what the loaded engine will say: how this CPU computes."""
        import torch

        from judging.models.device_dtype import computes_bfloat16

        is_native = computes_bfloat16(torch.device("cpu"))
        return {} if is_native else {"arithmetic": "float32"}

    def score(self, *prompts: Any, **options: Any) -> Any:
        """Score labels, as the loaded engine does."""
        return self._engine.score(*prompts, **options)

    def generate(self, *prompts: Any, **options: Any) -> Iterator[TextBatch]:
        """Generate texts, as the loaded engine does."""
        return self._engine.generate(*prompts, **options)


def untrained_beside(judges: Mapping[str, Judge]) -> Judge:
    """Return the untrained judge of the embedded backbone, for tasks that no other one takes.

    On a CPU its weights are loaded when it first grades, so that it costs next to nothing before.
    """
    import torch

    if torch.cuda.is_available():
        judge = Judge.load(EMBEDDED)
        share_weights([*judges.values(), judge])
        return judge
    backbone = load_backbone(EMBEDDED, weights=False).with_pixels()
    return Judge(EMBEDDED, backbone, EngineOnUse(judges.values()))
