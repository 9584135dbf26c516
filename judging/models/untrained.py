"""The untrained model beside trained judges: it is loaded when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from judging.judge import Judge
from judging.models.backbones import load_backbone
from judging.models.devices import has_gpu
from judging.models.embedded import EMBEDDED

if TYPE_CHECKING:
    from judging.scoring.engine import Engine, TextBatch


class EngineOnUse:
    """Engine of the untrained embedded backbone, which is loaded when it is first used.

    Args:
        on_load: Called with the loaded judge, to share its weights with others.
    """

    posterior: Literal["exact"] = "exact"

    def __init__(self, on_load: Callable[[Judge], None]) -> None:
        self._on_load = on_load

    @cached_property
    def _engine(self) -> Engine:
        judge = Judge.load(EMBEDDED)
        self._on_load(judge)
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


def untrained_judge(on_load: Callable[[Judge], None]) -> Judge:
    """Return the untrained judge of the embedded backbone, for tasks that no other one takes.

    On a CPU its weights are loaded when it first grades, so that it costs next to nothing before.

    Args:
        on_load: Called with the judge once its weights are there.
    """
    if has_gpu():
        judge = Judge.load(EMBEDDED)
        on_load(judge)
        return judge
    backbone = load_backbone(EMBEDDED, weights=False).with_pixels()
    return Judge(EMBEDDED, backbone, EngineOnUse(on_load))
