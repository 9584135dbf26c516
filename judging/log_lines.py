"""Lines of a log that no text from outside can forge."""

from __future__ import annotations

import logging
import re

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, line breaks of Unicode, and marks that turn the order of letters round."""


def one_line(text: str) -> str:
    r"""Return a text on one line: control characters become escapes such as ``\n`` and ``\x1b``."""
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


class LineFormatter(logging.Formatter):
    """Formatter that writes each record on one line, and indents the lines of a traceback.

    Texts of callers and of data sets may hold line breaks, which would begin a line that looks like
    the log's own, and control characters, which a terminal obeys.
    """

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        return one_line(super().formatMessage(record).rstrip())

    def formatException(self, ei: logging._SysExcInfoType) -> str:
        """Return a traceback."""
        lines = super().formatException(ei).splitlines()
        return "\n".join(f"    {one_line(line)}" for line in lines)
