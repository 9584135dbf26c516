"""Chat contracts: what one benchmark script sends to its judge and reads back, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judging.registry import Registry
from judging.tasks import get_task
from judging.types import JudgeRequest
from serve.chat.layout import PromptLayout
from serve.errors import ApiError

SLOT = re.compile(r"\{(label|critique|confidence)\}")


@dataclass(frozen=True)
class Contract:
    """One script: how its prompts are cut, what they mean, and the reply that it can read."""

    name: str
    """Clients ask for the model ``custos/NAME``."""
    harness: str
    """The script's name, for people."""
    task: str
    layouts: tuple[PromptLayout, ...]
    words: Mapping[str, str]
    """From label to the word that the script reads, the best label first."""
    reply: str = "{label}"
    """The form of a reply. ``{label}`` is the word; ``{critique}`` and ``{confidence}`` may stand
    before or after it."""
    json_key: str = "label"
    """Key of the word when the client asks for a JSON object."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """What the script sends beside model and messages."""

    @cached_property
    def rubrics(self) -> set[str]:
        """Return the rubrics of the task that its prompts ask for."""
        task = get_task(self.task)
        return {
            task.rubric(
                JudgeRequest.model_construct(
                    variant=layout.variant,
                    question="any",
                    reference_mode=layout.reference_mode,
                    references=("any",) if "{reference}" in layout.template else (),
                    responses=("any",) * task.num_responses,
                )
            )
            for layout in self.layouts
        }

    def read(self, prompt: str, system: str = "") -> tuple[PromptLayout, dict[str, str]]:
        """Return the layout of a prompt, and the texts of its fields.

        Args:
            prompt: Text of the user's message.
            system: Text of system messages, in which only cues are looked for.

        Raises:
            ApiError: 422 if its delimiters are missing or could be understood in two ways.
        """
        readings = []
        for layout in self.layouts:
            fields = layout.cut(prompt)
            if fields and layout.suits(f"{system} {fields.surroundings}"):
                readings.append((layout, fields))
        if not readings:
            forms = "; or ".join(" ... ".join(layout.delimiters) for layout in self.layouts)
            raise ApiError(
                422, f"not a known prompt of {self.harness}; its forms are: {forms}", "messages"
            )
        layout, fields = readings[0]
        if len(readings) > 1 or not fields.is_certain:
            marks = " ... ".join(layout.delimiters)
            raise ApiError(
                422,
                f"the delimiters of {self.harness} ({marks}) stand in the prompt in more than one "
                "way, so that text could move from one field into another; remove them from the "
                "question, the reference and the response",
                "messages",
            )
        return layout, fields.texts

    def word(self, layout: PromptLayout, label: str) -> str:
        """Return the script's word for a label."""
        return (layout.words or self.words)[label]

    def parse(self, layout: PromptLayout, text: str) -> str | None:
        """Return the word in a reply of exactly the right form; ``None`` for anything else."""
        words = "|".join(map(re.escape, dict.fromkeys((layout.words or self.words).values())))
        patterns = {"label": f"({words})", "critique": r"[^<>]*", "confidence": r"[01]\.\d\d"}
        parts = SLOT.split(self.reply)
        pattern = "".join(
            patterns[part] if number % 2 else re.escape(part) for number, part in enumerate(parts)
        )
        match = re.fullmatch(pattern, text.strip())
        return match[1] if match else None


CHAT_CONTRACTS = Registry[Contract]("chat contract", "serve.chat.contracts")
chat_contract = CHAT_CONTRACTS.declare
"""Decorator of a function without arguments that returns a :class:`Contract`."""
