"""The exception that means "the person at the keyboard can fix this", and what engines raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class CustosError(Exception):
    """A mistake in what the user gave (a file, a row, a flag, a missing backbone).

    Entry points print its message on one line without a traceback. The message names what is wrong,
    shows the value, and says what to do instead.
    """


class Missing(CustosError):
    """What is fetched or made beforehand is not there: a backbone, a split."""


class Unparsed(CustosError):
    """A model's answer is none of the labels."""


class RowsFailed(Exception):
    """Some of the prompts put to an engine came to nothing.

    Args:
        errors: Why, by the prompt's index.
        answers: What the others came to, by the prompt's index; no one need ask for it again.
    """

    def __init__(
        self, errors: Mapping[int, CustosError], answers: Mapping[int, Any] | None = None
    ) -> None:
        super().__init__("; ".join(str(error) for error in errors.values()))
        self.errors = errors
        self.answers = answers or {}
