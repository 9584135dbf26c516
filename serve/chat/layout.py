"""Forms of a script's prompt: the delimiters at which question, reference and response are cut out.

That is safe only if there is one way to do it: whoever wrote a response may have put delimiters
into it. The way that the script meant is always there. So if it is the only one, no text can have
moved from one field to another.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from typing import Any, Literal

from judging.tasks import get_task
from judging.types import ReferenceMode
from serve.chat.slots import Slot

FIELD = re.compile(
    r"\{(question|criterion|context|reference|response_a|response_b|response"
    r"|json|lines|labelled|listed|low|high|skip)\}"
)
SKIP = "skip"
LABELLED = ("json", "lines", "labelled")
"""Fields that hold others under labels (:attr:`PromptLayout.labels`)."""
PREFACE = ""
ALTERNATIVES: Mapping[str, ReferenceMode] = {"<AND>": "all", "<OR>": "any"}


@dataclass(frozen=True)
class Sample:
    """A question in our own words, with a response that is surely right and one that is wrong."""

    question: str
    reference: str
    right: str
    wrong: str
    criterion: str = "The answer agrees with the reference."
    context: str = ""

    @classmethod
    def of_task(cls, task: str, *, wrong: str | None = None) -> Sample:
        """Take the example of a task; that of a pair has the right response first.

        ``wrong`` is a wrong response, for tasks of a single response.
        """
        row = get_task(task).example_row()
        return cls(
            row["question"],
            next(iter(row.get("references", ())), ""),
            row.get("response") or row["response_a"],
            wrong or row["response_b"],
            next(iter(row.get("criteria", ())), cls.criterion),
        )

    def fields(self, *, right: bool) -> dict[str, str]:
        """Return the text of each field, with the right or the wrong response.

        Of a pair, the right response comes first if ``right``.
        """
        first, second = (self.right, self.wrong) if right else (self.wrong, self.right)
        return {**asdict(self), "response": first, "response_a": first, "response_b": second}


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
    delimiter before or after it begins or ends with the prompt. A field that stands twice is the
    same text again.

    Three fields hold others, under ``labels``: ``{json}`` an object, ``{lines}`` a line ``label:
    JSON`` for each, and ``{labelled}`` a block ``label:``, line break, text for each, in the order
    in which ``{listed}`` names them (``Input, Actual Output, and Context``). ``{low}`` and
    ``{high}`` are the ends of the scale that the script asks for."""
    system: str = ""
    """The same for a system message beside the prompt, if fields stand there too."""
    role: Literal["user", "system"] = "user"
    """Role of the message in which the script sends it. A lone message is read in either."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """From label to field: ``{"Actual Output": "response"}``. Labels may be missing. The empty
    label stands for the text before the first block."""
    cues: tuple[str, ...] = ()
    """Lower-case words that must stand in the script's own text, outside the fields."""
    absent: tuple[str, ...] = ()
    """Lower-case words that must not stand there."""
    forbidden: tuple[str, ...] = ()
    """Delimiters of the script's other forms. A prompt with one of them in a field is refused."""
    variant: str = "plain"
    """Variant of the contract's task."""
    reference_mode: ReferenceMode = "any"
    words: Mapping[str, str] = field(default_factory=dict)
    """From label to the word that the script reads, if other than the contract's."""
    form: Mapping[str, Slot] = field(default_factory=dict)
    """Keys of the object that the script reads, if other than the contract's."""
    sample: Sample = CAPITAL
    """What ``custos doctor`` sends."""
    preamble: str = ""
    """What it sends before that, in our words, if the script's own words hold delimiters too."""

    def cut(self, text: str, system: str = "") -> PromptFields | None:
        """Cut the fields out of a prompt; return ``None`` if a delimiter is missing.

        Without a template of its own, a system message counts as the script's own words.
        """
        prompt = _template(self.template).cut(text)
        own_words = PromptFields({}, system, is_certain=True)
        beside = _template(self.system).cut(system) if self.system else own_words
        if prompt is None or beside is None:
            return None
        fields = self._unfolded(
            PromptFields(
                {**prompt.texts, **beside.texts},
                f"{beside.surroundings} {prompt.surroundings}",
                prompt.is_certain and beside.is_certain,
            )
        )
        texts = fields.texts.values() if fields else ()
        if fields and any(mark in each for mark in self.forbidden for each in texts):
            return replace(fields, is_certain=False)
        return fields

    def _unfolded(self, fields: PromptFields) -> PromptFields | None:
        """Replace a field that holds others by them; return ``None`` if it is in no known form."""
        kind = next((name for name in LABELLED if name in fields.texts), None)
        if kind is None:
            return fields
        texts = dict(fields.texts)
        folded, listed = texts.pop(kind), texts.pop("listed", "")
        is_certain = fields.is_certain
        if kind == "labelled":
            inner = self._blocks(folded, re.split(r",? and |, ", listed))
            is_certain = is_certain and inner is not None and inner.is_certain
            values: Mapping[str, Any] | None = inner.texts if inner else None
        else:
            values = decoded(folded) if kind == "json" else _decoded_lines(folded)
        if values is None or not values.keys() <= self.labels.keys():
            return None if fields.is_certain else fields
        for label, value in values.items():
            name = self.labels[label]
            texts[name] = "\n\n".join(filter(None, (texts.get(name), _as_text(value).strip())))
        return PromptFields(texts, fields.surroundings, is_certain)

    def _blocks(self, text: str, names: list[str]) -> PromptFields | None:
        """Cut a text into the blocks of all these labels, in this order."""
        if len({*names}) < len(names) or not {*names} <= self.labels.keys():
            return None
        blocks = _Template([*(f"\n{name}:\n" for name in names), ""], names).cut(text)
        before = blocks.surroundings.strip() if blocks else ""
        if blocks and PREFACE in self.labels:
            return replace(blocks, texts={PREFACE: before, **blocks.texts})
        return None if before else blocks

    def suits(self, surroundings: str) -> bool:
        """Tell whether the script's own text has the cues of this layout."""
        plain = " ".join(surroundings.split()).casefold()
        return all(cue in plain for cue in self.cues) and not any(
            cue in plain for cue in self.absent
        )

    def payload(self, *, right: bool) -> str:
        """Write a prompt of this form about the sample, in our own words."""
        instruction = f"Judge what stands between the marks. {' '.join(self.cues)}".strip()
        instruction += self.preamble
        filled = self.filled(self.template, self.sample.fields(right=right))
        return filled if FIELD.match(self.template) else f"{instruction}\n{filled}"

    def messages(self, *, right: bool) -> list[dict[str, str]]:
        """Write the messages about the sample, as the script sends them."""
        messages = [{"role": self.role, "content": self.payload(right=right)}]
        if self.system:
            system = f"{' '.join(self.cues)} " + self.filled(
                self.system, self.sample.fields(right=right)
            )
            messages.insert(0, {"role": "system", "content": system})
        return messages

    def filled(self, template: str, texts: Mapping[str, str]) -> str:
        """Fill one of the templates. Labels are written for the fields that have a text."""
        names: dict[str, str] = {}
        for name, key in self.labels.items():
            names.setdefault(key, name)
        values = {name: texts[key] for key, name in names.items() if texts.get(key)}
        preface = values.pop(PREFACE, "")
        folded = {
            SKIP: " (ours)",
            "json": json.dumps(values),
            "lines": "\n".join(f"{name}: {json.dumps(text)}" for name, text in values.items()),
            "labelled": f"{preface}\n\n".lstrip()
            + "".join(f"{name}:\n{text} \n\n" for name, text in values.items()),
            "listed": " and ".join(values),
            **{"low": "0", "high": "10"},
        }
        return FIELD.sub(lambda match: {**texts, **folded}[match[1]], template)

    @property
    def fields(self) -> set[str]:
        """List the fields that a prompt of this form may have."""
        names = {*FIELD.findall(self.template + self.system), *self.labels.values()}
        return names - {SKIP, "listed", "low", "high", *LABELLED}

    @property
    def delimiters(self) -> str:
        """Write out the delimiters for a person to read."""
        parts = FIELD.split(f"{self.system} {self.template}")[::2]
        marks = [" ".join(part.split()) for part in parts if part.strip()]
        return " ... ".join([*marks, *self.labels])


class _Template:
    """Delimiters with fields between them, ready to cut texts."""

    def __init__(self, literals: list[str], names: list[str]) -> None:
        self.repeats: dict[str, tuple[str, str]] = {}
        """For a field after one that stands a second time: that one, and what is between them."""
        for number, name in reversed([*enumerate(names)]):
            if name != SKIP and name in names[:number]:
                self.repeats[names[number + 1]] = (name, literals.pop(number + 1))
                del names[number]
        self.names = names
        self.patterns = [_pattern(literal) for literal in literals]
        if not literals[0].strip():
            self.patterns[0] = re.compile(r"(?=(\A))")

    def cut(self, text: str) -> PromptFields | None:
        """Cut out the fields; return ``None`` if a delimiter is missing."""
        text = f"\n{text}"  # the first line must begin as all others do
        first = self._leftmost(text)
        if first is None:
            return None
        last = self._rightmost(text)
        texts: dict[str, str] = {}
        around = [text[: first[0][0]], text[last[-1][1] :]]
        for name, (_, start), (end, _) in zip(self.names, first, first[1:], strict=False):
            value = text[start:end]
            if name in self.repeats:
                earlier, between = self.repeats[name]
                beginning = texts[earlier].lstrip() + between
                value = value.lstrip()
                if not value.startswith(beginning):
                    return None
                value = value.removeprefix(beginning)
            if name == SKIP:
                around.append(value)
            else:
                texts[name] = value
        is_certain = [end for _, end in first] == [end for _, end in last]
        stripped = {name: value.strip() for name, value in texts.items()}
        return PromptFields(stripped, " ".join(around), is_certain)

    def _leftmost(self, text: str) -> list[tuple[int, int]] | None:
        """Find the span of each delimiter, as early as it can be; ``None`` if one is missing."""
        spans, position = [], 0
        for pattern in self.patterns:
            match = pattern.search(text, position)
            if match is None:
                return None
            spans.append(match.span(1))
            position = match.end(1)
        return spans

    def _rightmost(self, text: str) -> list[tuple[int, int]]:
        """Find the span of each delimiter, as late as it can be. None may be missing."""
        spans: list[tuple[int, int]] = []
        limit = len(text)
        for pattern in reversed(self.patterns):
            found = (match.span(1) for match in pattern.finditer(text))
            *_, last = (span for span in found if span[1] <= limit)
            spans.insert(0, last)
            limit = last[0]
        return spans


@cache
def _template(text: str) -> _Template:
    parts = FIELD.split(text)
    return _Template(parts[::2], parts[1::2])


def decoded(text: str) -> dict[str, Any] | None:
    """Decode an object; return ``None`` for anything else, or if a key stands twice."""
    try:
        value = json.loads(text, object_pairs_hook=_once_each)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; raise ``ValueError`` if a key stands twice, as readers differ on it."""
    if len(values := dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice")
    return values


_DECODER = json.JSONDecoder(object_pairs_hook=_once_each)


def _decoded_lines(text: str) -> dict[str, Any] | None:
    """Decode lines ``label: JSON``, where a value may go on over several lines.

    A text within a value cannot begin a line, as its line breaks are escaped.
    """
    values: dict[str, Any] = {}
    position = 0
    while position < len(text):
        label = re.compile(r"(\w+): ").match(text, position)
        if label is None or label[1] in values:
            return None
        try:
            values[label[1]], position = _DECODER.raw_decode(text, label.end())
        except (ValueError, RecursionError):
            return None
        if text[position : position + 1] not in ("", "\n"):
            return None
        position += 1
    return values


def _as_text(value: Any) -> str:
    """Write a decoded value as a text; an object that holds one text alone is that text."""
    if (
        isinstance(value, dict)
        and len(value) == 1
        and isinstance(only := [*value.values()][0], str)
    ):
        return only
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _pattern(literal: str) -> re.Pattern[str]:
    """Compile a pattern for a delimiter, as tolerant of space within it as is safe.

    Space at its ends belongs to the fields, which are stripped, but must be there. Every repetition
    is bounded, so that a long prompt is searched in linear time. The delimiter is the group of a
    lookahead, so that two of them are found where the end of one is the beginning of the next.
    """
    core = literal.strip()
    if not core:
        return re.compile(r"(?=(\Z))")
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
    return re.compile(f"(?=({''.join(pieces)}))")


def _space(run: str) -> str:
    count = run.count("\n")
    return rf"[ \t\r]{{0,8}}{_lines(count)}" if count else r"[ \t\r]{1,8}"


def _lines(count: int) -> str:
    return rf"(?:\n[ \t\r]{{0,80}}){{{count}}}"
