"""Written forms of answers: what a problem is made of, before a response is put into words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from data_prep.synthetic.text.names import Language

FormSplit = Literal["train", "test"]


@dataclass(frozen=True)
class Form:
    """One way to write an answer."""

    name: str
    """Name of the form, such as ``fraction``, which all answers in it share."""
    text: str
    is_latex: bool = False
    held_out: bool = False
    """Kept for test data."""

    @property
    def shown(self) -> str:
        """Return the form as it stands in a sentence."""
        return f"${self.text}$" if self.is_latex else self.text

    @property
    def boxed(self) -> str:
        r"""Return the form as it stands in ``\boxed{}``: words as text."""
        is_words = not self.is_latex and any(map(str.isalpha, self.text))
        return rf"\text{{{self.text}}}" if is_words else self.text


def latex(name: str, text: str, *, held_out: bool = False) -> Form:
    """Return a form in LaTeX."""
    return Form(name, text, is_latex=True, held_out=held_out)


@dataclass(frozen=True)
class Problem:
    """A question with one answer in many forms, and the forms of answers that it is not."""

    kind: str
    language: Language
    question: str
    references: tuple[str, ...]
    right: tuple[Form, ...]
    wrong: tuple[tuple[Form, ...], ...]
    """Forms of each wrong answer."""
    choices: tuple[str, ...] = ()
