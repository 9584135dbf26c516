"""Chat contracts: what one benchmark script sends to its judge and reads back, as data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any, Literal

from judging.registry import Registry
from judging.tasks import get_task
from judging.types import JudgeRequest, score_of
from serve.calls.errors import ApiError
from serve.chat.layout import PromptFields, PromptLayout, Sample, decoded
from serve.chat.slots import Boolean, Fixed, Label, Score, Slot, Text, holds_verdict

__all__ = [
    "Boolean",
    "CHAT_CONTRACTS",
    "Contract",
    "Fixed",
    "Label",
    "PromptLayout",
    "Sample",
    "Score",
    "Slot",
    "Text",
    "chat_contract",
]

SLOT = re.compile(r"\{(label|critique|confidence)\}")
JSON_REPLY = "{json}"
MOST_HINTED_CHARS = 20_000
"""Longest prompt that other contracts are tried on, to name the one that reads it."""


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
    """From label to the word that the script reads, the best label first. A label without a word
    has that of the next worse one: a script of yes and no calls no answer right that is so in part.
    """
    reply: str = "{label}"
    """The form of a reply. ``{label}`` is the word; ``{critique}`` and ``{confidence}`` may stand
    before or after it. ``{json}``: an object of the keys of ``form``."""
    steps: PromptLayout | None = None
    """Prompt that the script sends first, for the steps in which a criterion is to be checked. The
    reply to it is the criterion itself, as the only step."""
    form: Mapping[str, Slot] = field(default_factory=dict)
    """Keys of the object that the script reads, and what stands under them. Without a form, a
    client that asks for an object must send its schema."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """What the script sends beside model and messages."""
    refusal_status: Literal[400, 422] = 422
    """Status of a refused prompt. mlflow sends again without its schema after 400, and simple-evals
    sends for ever after 422."""

    @property
    def has_critique(self) -> bool:
        """Tell whether a reply holds a critique."""
        return "{critique}" in self.reply

    def __post_init__(self) -> None:
        """Give its words and its object to the layouts that have none of their own.

        Raises ``ValueError`` if a label has no word, or a word stands for no label.
        """
        layouts = (
            replace(each, words=each.words or self.words, form=each.form or self.form)
            for each in self.layouts
        )
        object.__setattr__(self, "layouts", tuple(layouts))
        task = get_task(self.task)
        rubrics = task.rows_by_rubric()
        labels = {score_of(label) for rubric in rubrics for label in task.labels(rubric)}
        for layout in self.layouts:
            if unknown := layout.words.keys() - labels:
                raise ValueError(f"{self.name}: task {self.task} has no label '{min(unknown)}'")
            if lacking := labels - self.completed(layout.words).keys():
                raise ValueError(f"{self.name}: no word for the label '{min(lacking)}'")

    @cached_property
    def worth(self) -> dict[str, float]:
        """Look up what the task's labels are worth (:meth:`JudgeTask.worth_by_score`)."""
        return get_task(self.task).worth_by_score()

    def completed(self, words: Mapping[str, str]) -> dict[str, str]:
        """Give a word to each label that has none: that of the next worse one, if there is one."""
        found = dict(words)
        worst_first = sorted(self.worth.items(), key=lambda item: item[1])
        word: str | None = None
        for _, labels in groupby(worst_first, key=lambda item: item[1]):
            alike = [label for label, _ in labels]
            word = next((words[label] for label in alike if label in words), word)
            found |= {label: word for label in alike if label not in words and word is not None}
        return found

    @cached_property
    def rubrics(self) -> set[str]:
        """List the rubrics of the task that its prompts ask for."""
        task, found = get_task(self.task), set[str]()
        for layout in self.layouts:
            has_references = {"reference" in layout.fields}
            if "reference" in layout.labels.values():  # labels may be missing
                has_references.add(False)
            for has_reference in has_references:
                request = JudgeRequest.model_construct(
                    variant=layout.variant,
                    question="any",
                    criteria=("any",),
                    reference_mode=layout.reference_mode,
                    references=("any",) if has_reference else (),
                    responses=("any",) * task.num_responses,
                )
                found.add(task.rubric(request))
        return found

    def read(self, prompt: str, system: str = "") -> tuple[PromptLayout, PromptFields]:
        """Find the layout of a prompt, and cut it into its fields.

        Raises ``ApiError`` 422 if delimiters are missing or could be understood in two ways.
        """
        readings = self.readings(prompt, system)
        if not readings:
            message = f"not a known prompt of {self.harness}; {self._hint(prompt, system)}"
            raise ApiError(422, message, "messages")
        layout, fields = readings[0]
        if len(readings) > 1 or not fields.is_certain:
            raise ApiError(
                422,
                f"the delimiters of {self.harness} ({layout.delimiters}) stand in the prompt in "
                "more than one way, so that text could move from one field into another; remove "
                "them from the question, the reference and the response",
                "messages",
            )
        return layout, fields

    def readings(self, prompt: str, system: str) -> list[tuple[PromptLayout, PromptFields]]:
        """List the layouts that a prompt has, each with its fields."""
        cuts = ((layout, layout.cut(prompt, system)) for layout in self.layouts)
        return [
            (layout, fields)
            for layout, fields in cuts
            if fields and layout.suits(fields.surroundings)
        ]

    def _hint(self, prompt: str, system: str) -> str:
        """Say which contracts know a prompt or, if none does, which forms this one has."""
        if names := contracts_of(prompt, system):
            return f"the model {' or '.join(f'custos/{name}' for name in names)} reads it"
        return f"its forms are: {'; or '.join(layout.delimiters for layout in self.layouts)}"

    def word(self, layout: PromptLayout, label: str) -> str:
        """Translate a label into the script's word."""
        return self.completed(layout.words)[label]

    def parse(self, layout: PromptLayout, text: str) -> str | None:
        """Read the word in a reply of exactly the right form; ``None`` for anything else."""
        if self.reply == JSON_REPLY:
            return self._parse_object(layout, decoded(text))
        choice = "|".join(map(re.escape, dict.fromkeys(layout.words.values())))
        patterns = {"label": f"({choice})", "critique": r"[^<>]*", "confidence": r"[01]\.\d\d"}
        parts = SLOT.split(self.reply)
        pattern = "".join(
            patterns[part] if number % 2 else re.escape(part) for number, part in enumerate(parts)
        )
        match = re.fullmatch(pattern, text.strip())
        return match[1] if match else None

    def _parse_object(self, layout: PromptLayout, reply: dict[str, Any] | None) -> str | None:
        """Read the word of an object; its slots must agree. Numbers from the middle on are good.

        Where true, false or a number fits several labels, it is the best or the worst of them.
        """
        if reply is None or reply.keys() != layout.form.keys():
            return None
        words = self.completed(layout.words)
        worth = self.worth or dict.fromkeys(words, 0.0)
        fitting, is_good = [*words], False
        for key, slot in layout.form.items():
            value = reply[key]
            if not holds_verdict(slot):
                continue
            if isinstance(value, bool):
                fitting = [label for label in fitting if (worth[label] == 1) is value]
                is_good |= value
            elif isinstance(slot, Label):
                fitting = [label for label in fitting if words[label] == str(value)]
            elif isinstance(slot, Score) and isinstance(value, int | float):
                is_upper = value >= (slot.low + slot.high) / 2
                side = {0.5, *(each for each in worth.values() if (each > 0.5) is is_upper)}
                fitting = [label for label in fitting if worth[label] in side]
                is_good |= is_upper
            else:
                return None
        if not fitting:
            return None
        return words[(max if is_good else min)(fitting, key=worth.__getitem__)]


CHAT_CONTRACTS = Registry[Contract]("chat contract", "serve.chat.contracts")
chat_contract = CHAT_CONTRACTS.declare
"""Decorator of a function without arguments that returns a :class:`Contract`."""


def contracts_of(prompt: str, system: str) -> list[str]:
    """Name the contracts that read a prompt; none if it is too long to try all."""
    if len(prompt) + len(system) > MOST_HINTED_CHARS:
        return []
    return [each.name for each in CHAT_CONTRACTS if each.readings(prompt, system)]
