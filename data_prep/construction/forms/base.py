"""A form: what a person sees of a row, what is to be filled in, and what becomes of it.

The same form makes a CSV sheet and an HTML page, checks what comes back, and says when two people
disagree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar, Literal

from data_prep.construction.steps.base import Row
from data_prep.splits.filters import count_words
from judging.errors import CustosError, FieldError
from judging.registry import Registry

SEPARATOR = ";"
"""What stands between several choices in one cell."""
YES, NO = "yes", "no"

Value = str | tuple[str, ...]
"""A text or a choice, or several choices."""
Filled = Mapping[str, Value]
"""Entry to value; entries that are not asked for or may be left out are missing."""


@dataclass(frozen=True)
class Entry:
    """Something that a person fills in."""

    name: str
    """Column of the sheet."""
    prompt: str
    kind: Literal["choice", "choices", "text"] = "choice"
    options: Mapping[str, str] = field(default_factory=dict)
    """Choices with their meanings; an empty text if a choice needs none."""
    asked_if: tuple[str, tuple[str, ...]] | None = None
    """An entry before this one, and the values of it for which this one is asked."""
    required: bool = True
    min_words: int = 0
    compared: bool = True
    """Two people with different values disagree."""
    margin: float = 0
    """Numbers that differ by less are no disagreement."""
    unanimous: bool = False
    """Nobody may differ. In other entries more than half of three or more people decide."""
    prefilled: bool = False
    """It begins with the row's own value of this name, to be corrected."""
    leaves_out: bool = False
    """Once it is filled in, nothing else is asked: the row needs no annotation."""

    def is_asked(self, filled: Filled) -> bool:
        """Tell whether the other entries ask for this one."""
        if LEFT_OUT in filled:
            return self.leaves_out
        return self.asked_if is None or filled.get(self.asked_if[0]) in self.asked_if[1]

    def read(self, cell: str) -> Value:
        """Read a cell; raise ``FieldError`` if it is none of the options, or has too few words."""
        if self.kind == "text":
            if count_words(cell) < self.min_words:
                fault = f"has {count_words(cell)} words, expected at least {self.min_words}"
                raise FieldError(self.name, fault)
            return cell.strip()
        spellings = {option.casefold(): option for option in self.options}
        texts = [cell.strip()]
        if self.kind == "choices":
            texts = [text for each in cell.split(SEPARATOR) if (text := each.strip())]
        chosen = []
        for text in texts:
            if text.casefold() not in spellings:
                options = ", ".join(self.options)
                raise FieldError(self.name, f"'{text}' is not one of {options}")
            chosen.append(spellings[text.casefold()])
        if self.kind == "choice":
            return chosen[0]
        return tuple(option for option in self.options if option in chosen)

    def differs(self, first: Value | None, second: Value | None) -> bool:
        """Tell whether two people's values are a disagreement."""
        if self.margin and isinstance(first, str) and isinstance(second, str):
            return abs(float(first) - float(second)) >= self.margin
        return _comparable(first) != _comparable(second)


def _comparable(value: Value | None) -> Value:
    """Strip a value of what does not matter: case, space, and a full stop at the end."""
    if isinstance(value, str):
        return " ".join(value.split()).rstrip(" .。").casefold()
    return value or ()


class Form(ABC):
    """A form. A subclass says what is shown, what is asked, and what becomes of a row."""

    name: str
    summary: str
    """Summary of the decision, for the command's help."""
    guide: str
    """Instructions for people, shown before they begin."""
    entries: tuple[Entry, ...]
    headings: ClassVar[Mapping[str, str]] = {}
    """Fields of a row that people see, and the heading of each."""
    needs: ClassVar[tuple[str, ...]] = ("question",)
    """Fields that a row must have."""
    task: str | None = None
    """Task of the labelled examples that rows become; ``None`` if they become none."""
    rubric: ClassVar[str | None] = None
    """Rubric whose rules the form states; ``None`` if those of all rubrics are the same."""
    per_row: ClassVar[int] = 2
    """People who fill in each row before it counts."""

    @property
    def needed(self) -> list[str]:
        """List the columns that a sheet must have."""
        return [entry.name for entry in self.entries if not entry.leaves_out]

    def shown(self, row: Row) -> Mapping[str, str]:
        """Show the texts of a row that people see, each under its heading."""
        return texts_of(row, **self.headings)

    def pictures(self, row: Row) -> Sequence[str]:
        """List the pictures of a row that people see."""
        return tuple(row.get("images", ()))

    @abstractmethod
    def settled(self, row: Row, fillings: Mapping[str, Filled]) -> Row:
        """Add what people said to a row.

        The fillings are annotators to values that do not differ; or the one that decides, alone.
        Raise ``UnusableText`` if they say that the row cannot be used.
        """

    def decides_alone(self, filled: Filled) -> bool:
        """Tell whether one person's values settle a row, regardless of what others say."""
        return False

    def read(self, cells: Mapping[str, str]) -> Filled | None:
        """Read what was filled in of a row; ``None`` if nothing was beyond what was there.

        Raise ``CustosError`` if an entry is missing, is not asked for, or does not fit.
        """
        if not any(cells.get(e.name, "").strip() for e in self.entries if not e.prefilled):
            return None
        filled: dict[str, Value] = {}
        for entry in sorted(self.entries, key=lambda entry: not entry.leaves_out):
            cell = cells.get(entry.name, "").strip()
            if not entry.is_asked(filled):
                if cell and not entry.prefilled:
                    raise CustosError(f"'{entry.name}' is not asked for here")
            elif cell:
                filled[entry.name] = entry.read(cell)
            elif entry.required:
                raise CustosError(f"'{entry.name}' is not filled in")
        return filled

    def start_values(self, row: Row) -> dict[str, str]:
        """Look up the values that entries of a row begin with."""
        return {entry.name: str(row[entry.name]) for entry in self.entries if entry.prefilled}

    def majority(self, fillings: Mapping[str, Filled]) -> Mapping[str, Filled] | None:
        """Keep the fillings of those who agree, if they are all, or of three or more people most.

        ``None``: they are too few, or people differ in an entry that has to be unanimous.
        """
        differing = set(self.differences(list(fillings.values())))
        if not differing:
            return fillings
        if any(entry.unanimous for entry in self.entries if entry.name in differing):
            return None
        groups = [
            {name: each for name, each in fillings.items() if not self.differences([filled, each])}
            for filled in fillings.values()
        ]
        agreeing = [group for group in groups if not self.differences(list(group.values()))]
        largest = max(agreeing, key=len, default={})
        return largest if len(largest) > max(1, len(fillings) / 2) else None

    def differences(self, fillings: Sequence[Filled]) -> list[str]:
        """List the entries in which any two of several people disagree.

        An entry that only one of two was asked for is none: they disagree in what asks for it.
        """
        return [
            entry.name
            for entry in self.entries
            if entry.compared
            and any(
                entry.is_asked(first)
                and entry.is_asked(second)
                and entry.differs(first.get(entry.name), second.get(entry.name))
                for first, second in combinations(fillings, 2)
            )
        ]


LEFT_OUT = "left_out"
"""Name of the entry that leaves a row out."""
NO_NEED = Entry(
    LEFT_OUT,
    "No need for annotation?",
    "choices",
    options={YES: "the question, the picture or the responses are of no use"},
    required=False,
    unanimous=True,
    leaves_out=True,
)
"""Box that ends the annotation of a row (Figures 7 and 8 of TruthfulVQA's paper)."""

NOTE = Entry("note", "Note", "text", required=False, compared=False)

FORMS = Registry[Form]("form", "data_prep.construction.forms")
form = FORMS.declare


def plain_options(*names: str) -> dict[str, str]:
    """Offer options that need no explanation."""
    return dict.fromkeys(names, "")


def yes_or_no(name: str, prompt: str, *, unanimous: bool = False) -> Entry:
    """Make an entry with the options yes and no."""
    return Entry(name, prompt, options=plain_options(YES, NO), unanimous=unanimous)


def agreed_values(fillings: Mapping[str, Filled]) -> dict[str, Any]:
    """Take the values of the first person: where several filled in a row, they agree."""
    return dict(next(iter(fillings.values())))


def texts_of(row: Row, **headings: str) -> dict[str, str]:
    """Collect the fields of a row that are there, as texts by heading."""
    values = {heading: row.get(name) for name, heading in headings.items()}
    return {
        heading: "\n".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
        for heading, value in values.items()
        if value not in (None, "", [], ())
    }
