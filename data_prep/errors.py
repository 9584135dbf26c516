"""The error of a text that a model wrote and that nothing can be made from."""

from __future__ import annotations

from judging.errors import CustosError


class UnusableText(CustosError):
    """A text that no record can be made from.

    Args:
        reason: One of a few reasons, so that texts can be counted by it.
        detail: What exactly is wrong.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
