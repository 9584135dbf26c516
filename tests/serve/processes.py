"""``custos serve`` in a process of its own, with judges that are no models."""

from __future__ import annotations

from collections.abc import Callable

from judging import Judge
from tests.forks import custos


def be_service(load: Callable[[str], Judge], *arguments: str) -> None:
    """Be ``custos serve`` on a free port; a target of ``tests.forks``.

    Args:
        load: What stands for ``Judge.load``.
        arguments: Options of the command.
    """
    setattr(Judge, "load", load)  # noqa: B010 (mypy knows it as a method)
    custos("serve", *arguments, "--port", "0")
