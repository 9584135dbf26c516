"""Small made-up requests for the tests of this folder."""

from pathlib import Path
from typing import Any

import torch

from judging.judge import Judge
from judging.judge.card import JudgeCard
from judging.models.adapters import add_adapter, save_adapter
from judging.models.backbones import Backbone
from judging.types import JudgeRequest, Mode, Verdict


def ask(response: str = "Nineteen apples.", **fields: Any) -> JudgeRequest:
    """A quick-score request about apples."""
    given: dict[str, Any] = {
        "question": "How many apples are left?",
        "references": ("19",),
        "responses": (response,),
    }
    return JudgeRequest.model_validate(given | fields)


def pair(task: str = "truthful-pair", **fields: Any) -> JudgeRequest:
    """A pair of responses about a lighthouse."""
    given = {
        "task": task,
        "question": "Is the lighthouse green?",
        "response_a": "Yes, it is green.",
        "response_b": "No; it is brown, and it was never green.",
    }
    return JudgeRequest.model_validate(given | fields)


def card(modes: dict[str, tuple[Mode, ...]] | None = None, **tasks: tuple[str, ...]) -> JudgeCard:
    """A card of tasks with their rubrics."""
    known = {name.replace("_", "-"): rubrics for name, rubrics in tasks.items()}
    return JudgeCard(
        backbone="b", backbone_version="b", tasks=known, modes=modes or {}, instructions={}
    )


def only(judge: Judge, request: JudgeRequest, **options: Any) -> Verdict:
    """The verdict on one request."""
    [verdict] = judge.grade([request], **options)
    return verdict


def moved_adapter(model: Any, seed: int = 1, size: float = 0.05, **kind: Any) -> Any:
    """An adapter on a model that moves every score; a fresh one changes none."""
    adapted = add_adapter(model, **({"r": 4, "alpha": 8} | kind))
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            parameter.data = size * torch.randn(parameter.shape, generator=generator)
        elif "magnitude" in name:  # of DoRA
            parameter.data *= 1 + size * torch.randn(parameter.shape, generator=generator)
    return adapted


def save_run(folder: Path, backbone: Backbone, rubrics: tuple[str, ...], **card: Any) -> Path:
    """Write a run folder as training leaves it, with an adapter that moves every score."""
    made = JudgeCard.for_rubrics(backbone, {"hieval-qs": rubrics}, response_budget=50)
    save_adapter(moved_adapter(backbone.model), folder)
    made = made.model_copy(update=card)
    (folder / "judge.json").write_text(made.model_dump_json(), encoding="utf-8")
    return folder
