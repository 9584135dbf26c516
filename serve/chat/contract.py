"""What one benchmark script sends to its judge and reads back, as data.

The harness has put question, reference and response into one prompt. They are cut out again at its
delimiters, which is safe only if there is one way to do it: whoever wrote a response may have put
delimiters into it. The way the harness meant is always there, so if it is the only one, no text can
have moved from one field to another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from judging.tasks import get_task
from judging.types import JudgeRequest, ReferenceMode
from serve.errors import ApiError

FIELD = re.compile(r"\{(question|reference|response_a|response_b|response|skip)\}")
SKIP = "skip"
SLOT = re.compile(r"\{(label|critique|confidence)\}")


@dataclass(frozen=True)
class Sample:
    """A question in our own words, with an answer that is surely right and one that is not."""

    question: str
    reference: str
    right: str
    wrong: str

    def filled(self, template: str, *, right: bool) -> str:
        """A template with this sample in its fields; of a pair, A is the right or the wrong one."""
        first, second = (self.right, self.wrong) if right else (self.wrong, self.right)
        values = {
            "question": self.question,
            "reference": self.reference,
            "response": first,
            "response_a": first,
            "response_b": second,
            SKIP: " (ours)",
        }
        return FIELD.sub(lambda found: values[found[1]], template)


CAPITAL = Sample(
    "What is the capital of France?", "Paris", "The capital of France is Paris.", "It is Rome."
)


@dataclass(frozen=True)
class Layout:
    """Where a prompt has its fields."""

    template: str
    """The delimiters, with ``{question}`` and so on between them, and ``{skip}`` for the harness's
    own text. Space and tabs may differ in the prompt, line breaks may not. Without a delimiter
    after it, the last field ends with the prompt."""
    cues: tuple[str, ...] = ()
    """Lower-case words that the harness's own text, outside the fields, must hold."""
    absent: tuple[str, ...] = ()
    """Lower-case words that it must not hold."""
    forbidden: tuple[str, ...] = ()
    """Delimiters of a harness's other forms, which no field may hold."""
    variant: str = "plain"
    """Of the task."""
    reference_mode: ReferenceMode = "any"
    separators: Mapping[str, ReferenceMode] = field(default_factory=dict)
    """What stands between several references in one field, and what they then mean."""
    words: Mapping[str, str] = field(default_factory=dict)
    """Label to the word that the harness reads, where they differ from the contract's."""
    sample: Sample = CAPITAL
    """What ``custos doctor`` sends."""

    def cut(self, text: str) -> Cut | None:
        """Cut the fields out of a prompt; ``None`` if its delimiters are not there."""
        text = f"\n{text}"  # the first line begins as all others do
        first = self._leftmost(text)
        if first is None:
            return None
        last = self._rightmost(text)
        fields = {
            name: text[end:start].strip()
            for name, (_, end), (start, _) in zip(self._names, first, first[1:], strict=False)
        }
        outside = f"{text[: first[0][0]]} {fields.pop(SKIP, '')} {text[last[-1][1] :]}"
        is_sure = [end for _, end in first] == [end for _, end in last] and not any(
            mark in value for mark in self.forbidden for value in fields.values()
        )
        return Cut(fields, outside, is_sure)

    def suits(self, outside: str) -> bool:
        """Whether the harness's own text is that of this layout."""
        plain = " ".join(outside.split()).casefold()
        return all(cue in plain for cue in self.cues) and not any(
            cue in plain for cue in self.absent
        )

    def payload(self, *, right: bool) -> str:
        """A prompt of this shape in our own words, about the sample."""
        told = f"Judge what stands between the marks. {' '.join(self.cues)}".strip()
        return f"{told}\n{self.sample.filled(self.template, right=right)}"

    @property
    def delimiters(self) -> list[str]:
        """For a person to read."""
        return [" ".join(part.split()) for part in FIELD.split(self.template)[::2] if part.strip()]

    @cached_property
    def _names(self) -> list[str]:
        return FIELD.split(self.template)[1::2]

    @cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        return [_pattern(part) for part in FIELD.split(self.template)[::2]]

    def _leftmost(self, text: str) -> list[tuple[int, int]] | None:
        """Spans of the delimiters, each as early as it can be; ``None`` if one is missing."""
        spans, position = [], 0
        for pattern in self._patterns:
            found = pattern.search(text, position)
            if found is None:
                return None
            spans.append(found.span())
            position = found.end()
        return spans

    def _rightmost(self, text: str) -> list[tuple[int, int]]:
        """Spans of the delimiters, each as late as it can be, where there are leftmost ones."""
        spans: list[tuple[int, int]] = []
        limit = len(text)
        for pattern in reversed(self._patterns):
            *_, last = (found.span() for found in pattern.finditer(text) if found.end() <= limit)
            spans.insert(0, last)
            limit = last[0]
        return spans


@dataclass(frozen=True)
class Cut:
    """A prompt in pieces."""

    fields: dict[str, str]
    outside: str
    """The harness's own words before and after the fields."""
    is_sure: bool
    """There is no other way to cut it."""


@dataclass(frozen=True)
class Contract:
    """One harness: how its prompts are cut, what they mean, and the reply it can read."""

    name: str
    """Clients ask for the model ``custos/<name>``."""
    harness: str
    task: str
    layouts: tuple[Layout, ...]
    words: Mapping[str, str]
    """Label to the word that the harness reads."""
    reply: str = "{label}"
    """``{label}`` is the word; ``{critique}`` and ``{confidence}`` may stand before or after."""
    json_key: str = "label"
    """Under which the word stands when the client asks for a JSON object."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """What the harness sends beside model and messages."""

    @cached_property
    def rubrics(self) -> set[str]:
        """Rubrics of the task that its prompts ask for."""
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

    def read(self, prompt: str, system: str = "") -> tuple[Layout, dict[str, str]]:
        """Find the layout of a prompt and its fields.

        Args:
            prompt: What the user's message says.
            system: What system messages say; for cues only.

        Raises:
            ApiError: 422 if its delimiters are missing or could be understood in two ways.
        """
        suited = []
        for layout in self.layouts:
            cut = layout.cut(prompt)
            if cut and layout.suits(f"{system} {cut.outside}"):
                suited.append((layout, cut))
        if not suited:
            known = "; or ".join(" ... ".join(layout.delimiters) for layout in self.layouts)
            raise ApiError(
                422, f"this is no prompt of {self.harness} that is known here: {known}", "messages"
            )
        layout, cut = suited[0]
        if len(suited) > 1 or not cut.is_sure:
            marks = " ... ".join(layout.delimiters)
            raise ApiError(
                422,
                f"the delimiters of {self.harness} ({marks}) stand in the prompt in more than one "
                "way, so that text could move from one field into another; remove them from the "
                "question, the reference and the response",
                "messages",
            )
        return layout, cut.fields

    def word(self, layout: Layout, label: str) -> str:
        """The harness's word for a label."""
        return (layout.words or self.words)[label]

    def parse(self, layout: Layout, text: str) -> str | None:
        """The word in a reply of exactly this form; ``None`` for anything else."""
        words = "|".join(map(re.escape, dict.fromkeys((layout.words or self.words).values())))
        forms = {"label": f"({words})", "critique": r"[^<>]*", "confidence": r"[01]\.\d\d"}
        parts = SLOT.split(self.reply)
        pattern = "".join(
            forms[part] if number % 2 else re.escape(part) for number, part in enumerate(parts)
        )
        found = re.fullmatch(pattern, text.strip())
        return found[1] if found else None


def _pattern(literal: str) -> re.Pattern[str]:
    """A delimiter, with the space within it as loose as it can safely be.

    Space at its ends belongs to the fields, which are stripped, but must be there. Every repetition
    is bounded, so that a long prompt is searched in linear time.
    """
    core = literal.strip()
    if not core:
        return re.compile(r"\Z")
    before, after = literal[: literal.index(core)], literal[literal.index(core) + len(core) :]
    parts = re.split(r"(\s+)", core)
    loose = [_space(part) if number % 2 else re.escape(part) for number, part in enumerate(parts)]
    if "\n" in before:
        loose.insert(0, _lines(before.count("\n")))
    elif before:
        loose.insert(0, r"[ \t\r]")
    if after.count("\n") > 1:
        loose.append(f"(?={_space(after)})")
    elif after:
        loose.append(r"(?=\s|\Z)")
    return re.compile("".join(loose))


def _space(run: str) -> str:
    lines = run.count("\n")
    return rf"[ \t\r]{{0,8}}{_lines(lines)}" if lines else r"[ \t\r]{1,8}"


def _lines(count: int) -> str:
    return rf"(?:\n[ \t\r]{{0,80}}){{{count}}}"
