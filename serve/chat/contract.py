"""Chat contracts: what one benchmark script sends to its judge and reads back, as data.

The script has put question, reference and response into one text. They are cut out at the script's
delimiters, which is safe only if there is one way to do it: whoever wrote a response may have put
delimiters into it. The way that the script meant is always there. So if it is the only one, no text
can have moved from one field to another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judging.registry import Registry
from judging.tasks import get_task
from judging.types import JudgeRequest, ReferenceMode
from serve.calls.errors import ApiError

FIELD = re.compile(r"\{(question|reference|response_a|response_b|response|skip)\}")
SKIP = "skip"
SLOT = re.compile(r"\{(label|critique|confidence)\}")


@dataclass(frozen=True)
class Sample:
    """A question in our own words, with a response that is surely right and one that is wrong."""

    question: str
    reference: str
    right: str
    wrong: str

    @classmethod
    def of_task(cls, task: str, *, wrong: str | None = None) -> Sample:
        """Take the example of a task; that of a pair has the right response first.

        ``wrong`` is a wrong response, for tasks of a single response.
        """
        row = get_task(task).example_row()
        right = row.get("response") or row["response_a"]
        return cls(row["question"], row["references"][0], right, wrong or row["response_b"])

    def filled(self, template: str, *, right: bool) -> str:
        """Fill a template of :class:`PromptLayout` with the right or the wrong response.

        Of a pair, the right response comes first if ``right``.
        """
        first, second = (self.right, self.wrong) if right else (self.wrong, self.right)
        values = {
            "question": self.question,
            "reference": self.reference,
            "response": first,
            "response_a": first,
            "response_b": second,
            SKIP: " (ours)",
        }
        return FIELD.sub(lambda match: values[match[1]], template)


CAPITAL = Sample.of_task("hieval-qs", wrong="It is Rome.")


@dataclass(frozen=True)
class PromptFields:
    """A prompt in pieces."""

    texts: dict[str, str]
    """The text of each field, by its name."""
    surroundings: str
    """The script's own words, before and after the fields."""
    is_certain: bool
    """Whether the prompt cannot be cut in another way."""


@dataclass(frozen=True)
class PromptLayout:
    """One form of a script's prompt: its delimiters, and what the fields between them mean."""

    template: str
    """The delimiters, with ``{question}`` and so on between them, and ``{skip}`` for text of the
    script's own. Spaces and tabs may differ in the prompt; line breaks may not. A field without a
    delimiter after it ends with the prompt."""
    cues: tuple[str, ...] = ()
    """Lower-case words that must stand in the script's own text, outside the fields."""
    absent: tuple[str, ...] = ()
    """Lower-case words that must not stand there."""
    forbidden: tuple[str, ...] = ()
    """Delimiters of the script's other forms. A prompt with one of them in a field is refused."""
    variant: str = "plain"
    """Variant of the contract's task."""
    reference_mode: ReferenceMode = "any"
    separators: Mapping[str, ReferenceMode] = field(default_factory=dict)
    """What stands between several references in one field, and what they then mean."""
    words: Mapping[str, str] = field(default_factory=dict)
    """From label to the word that the script reads, if other than the contract's."""
    sample: Sample = CAPITAL
    """What ``custos doctor`` sends."""

    def cut(self, text: str) -> PromptFields | None:
        """Cut the fields out of a prompt; return ``None`` if a delimiter is missing."""
        text = f"\n{text}"  # the first line must begin as all others do
        first = self._leftmost(text)
        if first is None:
            return None
        last = self._rightmost(text)
        names = FIELD.split(self.template)[1::2]
        texts = {
            name: text[end:start].strip()
            for name, (_, end), (start, _) in zip(names, first, first[1:], strict=False)
        }
        surroundings = f"{text[: first[0][0]]} {texts.pop(SKIP, '')} {text[last[-1][1] :]}"
        is_certain = [end for _, end in first] == [end for _, end in last] and not any(
            mark in value for mark in self.forbidden for value in texts.values()
        )
        return PromptFields(texts, surroundings, is_certain)

    def suits(self, surroundings: str) -> bool:
        """Tell whether the script's own text has the cues of this layout."""
        plain = " ".join(surroundings.split()).casefold()
        return all(cue in plain for cue in self.cues) and not any(
            cue in plain for cue in self.absent
        )

    def payload(self, *, right: bool) -> str:
        """Write a prompt of this form about the sample, in our own words."""
        instruction = f"Judge what stands between the marks. {' '.join(self.cues)}".strip()
        return f"{instruction}\n{self.sample.filled(self.template, right=right)}"

    @property
    def delimiters(self) -> str:
        """Write out the delimiters for a person to read."""
        parts = FIELD.split(self.template)[::2]
        return " ... ".join(" ".join(part.split()) for part in parts if part.strip())

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        return [_pattern(part) for part in FIELD.split(self.template)[::2]]

    def _leftmost(self, text: str) -> list[tuple[int, int]] | None:
        """Find the span of each delimiter, as early as it can be; ``None`` if one is missing."""
        spans, position = [], 0
        for pattern in self._patterns:
            match = pattern.search(text, position)
            if match is None:
                return None
            spans.append(match.span())
            position = match.end()
        return spans

    def _rightmost(self, text: str) -> list[tuple[int, int]]:
        """Find the span of each delimiter, as late as it can be. None may be missing."""
        spans: list[tuple[int, int]] = []
        limit = len(text)
        for pattern in reversed(self._patterns):
            *_, last = (match.span() for match in pattern.finditer(text) if match.end() <= limit)
            spans.insert(0, last)
            limit = last[0]
        return spans


def _pattern(literal: str) -> re.Pattern[str]:
    """Compile a pattern for a delimiter, as tolerant of space within it as is safe.

    Space at its ends belongs to the fields, which are stripped, but must be there. Every repetition
    is bounded, so that a long prompt is searched in linear time.
    """
    core = literal.strip()
    if not core:
        return re.compile(r"\Z")
    before, after = literal[: literal.index(core)], literal[literal.index(core) + len(core) :]
    parts = re.split(r"(\s+)", core)
    pieces = [_space(part) if number % 2 else re.escape(part) for number, part in enumerate(parts)]
    if "\n" in before:
        pieces.insert(0, _lines(before.count("\n")))
    elif before:
        pieces.insert(0, r"[ \t\r]")
    if after.count("\n") > 1:
        pieces.append(f"(?={_space(after)})")
    elif after:
        pieces.append(r"(?=\s|\Z)")
    return re.compile("".join(pieces))


def _space(run: str) -> str:
    count = run.count("\n")
    return rf"[ \t\r]{{0,8}}{_lines(count)}" if count else r"[ \t\r]{1,8}"


def _lines(count: int) -> str:
    return rf"(?:\n[ \t\r]{{0,80}}){{{count}}}"


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

    @property
    def has_critique(self) -> bool:
        """Tell whether a reply holds a critique."""
        return "{critique}" in self.reply

    @cached_property
    def rubrics(self) -> set[str]:
        """List the rubrics of the task that its prompts ask for."""
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
        """Find the layout of a user's message, and cut the message into the texts of its fields.

        System messages are only searched for cues. Raises ``ApiError`` 422 if delimiters are
        missing or could be understood in two ways.
        """
        readings = []
        for layout in self.layouts:
            fields = layout.cut(prompt)
            if fields and layout.suits(f"{system} {fields.surroundings}"):
                readings.append((layout, fields))
        if not readings:
            forms = "; or ".join(layout.delimiters for layout in self.layouts)
            message = f"not a known prompt of {self.harness}; its forms are: {forms}"
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
        return layout, fields.texts

    def word(self, layout: PromptLayout, label: str) -> str:
        """Translate a label into the script's word."""
        return (layout.words or self.words)[label]

    def parse(self, layout: PromptLayout, text: str) -> str | None:
        """Read the word in a reply of exactly the right form; ``None`` for anything else."""
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
