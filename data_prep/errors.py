"""The error of a text that a model wrote and that nothing can be made from."""

from __future__ import annotations

from judging.errors import CustosError


class UnusableText(CustosError):
    """A text that no record can be made from.

    ``reason`` is one of a few, so that texts can be counted by it, and ``detail`` says what exactly
    is wrong. Where the form is wrong and not the content, it is ``mendable``: asking once more may
    help.
    """

    def __init__(self, reason: str, detail: str, *, mendable: bool = False) -> None:
        super().__init__(detail)
        self.reason = reason
        self.mendable = mendable
