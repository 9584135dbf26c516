"""Long jobs and their log, entries that files declare, and threads of torch."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from judging import progress as progress_module
from judging.errors import CustosError
from judging.log_lines import LineFormatter, one_line
from judging.progress import ProgressBar, made_ahead, progress_over
from judging.tasks import TASKS


def test_a_log_holds_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(progress_module, "monotonic", lambda: now)
    seen = []
    for item in progress_over(range(9), "drawing", 9):
        seen.append(item)
        now += progress_module.LINE_EVERY / 3
    *lines, bar = capsys.readouterr().err.splitlines()
    assert seen == list(range(9))
    assert [line.split("  ")[:2] for line in lines] == [
        ["drawing", "3/9"],
        ["drawing", "6/9"],
        ["drawing", "9/9"],
    ]
    assert "9/9" in bar


def test_a_terminal_gets_no_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(ProgressBar, "line", lambda *_: pytest.fail("a line on a terminal"))
    assert list(progress_over("ab", "reading", 2)) == ["a", "b"]
    assert "reading" in capsys.readouterr().err


def test_the_next_item_is_made_while_one_is_used() -> None:
    begun = [threading.Event() for _ in range(5)]
    threads = set()

    def numbers() -> Iterator[int]:
        for number in range(5):
            begun[number].set()
            threads.add(threading.current_thread())
            yield number

    for number in (ahead := made_ahead(numbers())):
        if number < 4:
            assert begun[number + 1].wait(20)
        assert not any(event.is_set() for event in begun[number + 2 :])
    assert list(ahead) == []
    assert threading.current_thread() not in threads and len(threads) == 1
    assert not any(thread.is_alive() for thread in threads)


def test_an_error_comes_after_the_items_before_it() -> None:
    def numbers() -> Iterator[int]:
        yield from (0, 1)
        raise ValueError("two")

    ahead = made_ahead(numbers())
    assert [next(ahead), next(ahead)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(ahead)


def test_nothing_is_made_any_more_once_it_is_closed() -> None:
    made, goes_on = [], threading.Event()

    def numbers() -> Iterator[int]:
        for number in range(9):
            if number == 1:
                goes_on.wait(20)
            made.append(number)
            yield number

    ahead = made_ahead(numbers())
    assert next(ahead) == 0
    threading.Timer(0.05, goes_on.set).start()
    ahead.close()  # type: ignore[attr-defined]  # it is a generator
    assert made == [0, 1]


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


def test_a_registry_finds_the_entries_of_its_package_by_name() -> None:
    names = [task.name for task in TASKS]
    assert list(TASKS.names()) == sorted(names) == names
    assert "criterion" in TASKS and "cow" not in TASKS
    assert TASKS.get("criterion").name == "criterion"
    with pytest.raises(CustosError, match=f"^task 'cow' is not one of {', '.join(names)}$"):
        TASKS.get("cow")
    with pytest.raises(ValueError, match="task 'criterion' is already declared"):
        TASKS.declare(type(TASKS.get("criterion")))


PROGRAM = """
import os, sys

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"), os.environ.get("GOMP_SPINCOUNT"))
            sys.exit(0)

sys.meta_path.insert(0, Watch())
from {module} import {name}
{name}.{use}
"""


@pytest.mark.parametrize(
    ("module", "name", "use", "chosen", "expected"),
    [
        ("train.hieval_stage1", "main", "__name__", {"GOMP_SPINCOUNT": "7"}, "passive 7"),
        ("custos", "Judge", "load('embedded')", {"OMP_WAIT_POLICY": "active"}, "active None"),
    ],
)
def test_waiting_is_set_before_torch_is_loaded(
    module: str, name: str, use: str, chosen: dict[str, str], expected: str
) -> None:
    waiting = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    environment = {key: value for key, value in os.environ.items() if key not in waiting}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module, name=name, use=use)],
        env=environment | chosen,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout.strip() == expected, run.stderr
