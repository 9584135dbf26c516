"""The error of a text that a model wrote and that nothing can be made from."""

from __future__ import annotations

from judging.errors import CustosError


class UnusableText(CustosError):
    """A text that no record can be made from.

    Args:
        reason: One of a few reasons, so that texts can be counted by it.
        detail: What exactly is wrong.
        mendable: The form is wrong, not the content, so that asking once more may help.
    """

    def __init__(self, reason: str, detail: str, *, mendable: bool = False) -> None:
        super().__init__(detail)
        self.reason = reason
        self.mendable = mendable
