"""Texts that would forge lines of a log, or command a terminal."""

import logging

import pytest

from judging.log_lines import LineFormatter, one_line

FORGED = "gone\n2026-01-01 00:00:00,000 INFO request 1 POST /judge 200"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x1b[2J\x00\x7f\x9b", r"\x1b[2J\x00\x7f\x9b"),
        ("a\u2028b\u202ec", r"a\u2028b\u202ec"),
        ("Größe, 大小, 😀", "Größe, 大小, 😀"),
    ],
)
def test_control_characters_become_escapes(text: str, line: str) -> None:
    assert one_line(text) == line


def test_a_record_is_one_line_and_a_traceback_is_indented() -> None:
    logger = logging.Logger("test")
    lines: list[str] = []
    handler = logging.StreamHandler()
    handler.emit = lambda record: lines.extend(handler.format(record).split("\n"))  # type: ignore[method-assign]  # the shortest handler
    handler.setFormatter(LineFormatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    logger.info("asked %s", FORGED)
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("failed")
    assert lines[0] == "INFO asked " + FORGED.replace("\n", r"\n")
    assert lines[1] == "ERROR failed"
    assert len(lines) > 4 and all(line.startswith("    ") for line in lines[2:])
