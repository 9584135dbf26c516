"""Values of files as the texts that a person sees in them."""

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

_EXACT = 2.0**53
"""Below it a float holds every whole number."""


def is_empty(value: Any) -> bool:
    """Tell whether a cell says nothing: it is missing, blank or not a number."""
    if isinstance(value, str | bytes):
        return not value.strip()
    return value is None or (isinstance(value, float) and math.isnan(value))


def as_text(value: Any, *, is_whole: bool = False) -> Any:
    """Write a number, a truth value, a time or bytes of text as text; leave others as they are.

    If all values of the column are whole (see :func:`holds_part`), a number is written without a
    fraction, and a time without its hour.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and is_whole and not holds_part(value):
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime) and is_whole and not holds_part(value):
        return value.date().isoformat()
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, UUID | timedelta):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return value


def holds_part(value: Any) -> bool:
    """Tell whether a number has a fraction, or a time an hour: then its column is not whole.

    Elements of lists count. A column of whole numbers becomes one of floats where cells are empty,
    and dates become times at midnight; only the whole column shows that.
    """
    if isinstance(value, list | tuple):
        return any(map(holds_part, value))
    if isinstance(value, float):
        return not math.isnan(value) and not (value.is_integer() and abs(value) < _EXACT)
    return isinstance(value, datetime) and value.time() != time.min
