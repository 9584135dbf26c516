"""The house rules on size: how long a file may be, and how many files a room may have."""

from collections import Counter

from tests.test_imports import FILES, ROOT

MOST_LINES = 500
MOST_FILES = 16


def test_no_file_is_too_long() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines())
        for path in FILES.values()
    }
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_no_room_has_too_many_files() -> None:
    num_files = Counter(str(path.parent.relative_to(ROOT)) for path in FILES.values())
    assert {room: number for room, number in num_files.items() if number > MOST_FILES} == {}


def test_no_room_of_tests_has_too_many_files() -> None:
    num_files = Counter(path.parent for path in (ROOT / "tests").rglob("*.py"))
    assert {room: number for room, number in num_files.items() if number > MOST_FILES} == {}


def test_no_room_of_recipes_has_too_many_files() -> None:
    num_files = Counter(path.parent for path in (ROOT / "recipes").rglob("*.yaml"))
    assert num_files
    assert max(num_files.values()) <= MOST_FILES
