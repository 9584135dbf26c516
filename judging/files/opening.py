"""Files about to be read: text encodings, Git LFS pointers, the file that a name means, YAML."""

import codecs
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, TextIO

import yaml

from judging.errors import CustosError

LFS_POINTER = "this is a pointer of Git LFS, not the file; fetch it with 'git lfs pull'"
_START = b"version https://git-lfs.github.com/spec/"


def is_lfs_pointer(path: Path) -> bool:
    """Tell whether a file is such a pointer."""
    with path.open("rb") as file:
        return file.read(len(_START)) == _START


def refuse_lfs_pointer(path: Path) -> None:
    """Raise ``CustosError``, with what to do, if a file is such a pointer."""
    if is_lfs_pointer(path):
        raise CustosError(f"{path}: {LFS_POINTER}")


def nearest_file(path: Path, suffixes: Collection[str]) -> str:
    """Return ``; the nearest is 'FILE'``, or what a broken link leads to; empty if none is near.

    Files of the same folder with one of ``suffixes`` are compared.
    """
    if path.is_symlink():
        return f"; it is a link to '{path.readlink()}', which does not exist"
    try:
        files = {
            file.stem: file.name
            for file in path.parent.iterdir()
            if file.suffix in suffixes and file.is_file()
        }
    except OSError:
        return ""
    # Without their endings, which are alike and would make every file near.
    near = get_close_matches(path.stem, files, n=1)
    return f"; the nearest is '{path.with_name(files[near[0]])}'" if near else ""


@dataclass(frozen=True)
class TextFormat:
    """Delimiter and encoding that a user states for a table; ``None``: the file decides."""

    delimiter: str | None = None
    encoding: str | None = None


NOTHING_STATED = TextFormat()


@contextmanager
def open_text(path: Path, encoding: str | None, newline: str = "") -> Iterator[TextIO]:
    """Open a file of text; bytes that cannot be decoded become lone surrogates.

    ``encoding`` is what the user states, default UTF-8; a byte order mark knows better. What is no
    text of it at all raises ``CustosError``.
    """
    with path.open("rb") as raw:
        start = raw.read(3)
    name = codecs.lookup(encoding or "utf-8").name
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        name = "utf-16"
    elif name == "utf-8" or start == codecs.BOM_UTF8:
        name = "utf-8-sig"
    try:
        with path.open(encoding=name, errors="surrogateescape", newline=newline) as file:
            yield file
    except UnicodeError:
        raise CustosError(f"{path}: {not_text(encoding or name)}") from None


def not_text(encoding: str) -> str:
    """Say what is wrong with bytes that are no text of an encoding, and the way out."""
    name = "UTF-8" if encoding.startswith("utf-8") else encoding
    return (
        f"is not {name} text; state the encoding with --encoding, such as cp1252 (Windows), or "
        "save the table as UTF-8 text (Excel: 'CSV UTF-8')"
    )


@contextmanager
def yaml_errors() -> Iterator[None]:
    """Raise every error of PyYAML as a ``YAMLError``.

    Deep nesting, numbers with thousands of digits, dates that no calendar has and other values that
    are not what their tag says end in other exceptions there.
    """
    try:
        yield
    except RecursionError:
        raise yaml.YAMLError("nested too deeply") from None
    except (ArithmeticError, AttributeError, LookupError, ValueError) as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from None


def load_yaml(text: str, loader: type[yaml.SafeLoader | yaml.BaseLoader] = yaml.SafeLoader) -> Any:
    """Decode a YAML document in which no key occurs twice; YAML itself would take the last one.

    Raises ``yaml.YAMLError``. ``loader`` decides the types of values.
    """
    with yaml_errors():
        reader = loader(text)
        document = reader.get_single_node()
        if document is None:
            return None
        _check_keys(document, set())
        return reader.construct_document(document)


@cache
def shipped_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that came with custos, once.

    Tables of words are long, so libyaml reads them where PyYAML was built with it.
    """
    text = path.read_text(encoding="utf-8")
    content: dict[str, Any] = load_yaml(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return content


def _check_keys(node: yaml.Node, checked: set[int]) -> None:
    """Check a node and its parts, each once, as aliases may repeat a node many times."""
    if id(node) in checked:
        return
    checked.add(id(node))
    keys: set[tuple[str, Any]] = set()
    if isinstance(node, yaml.SequenceNode):
        for part in node.value:
            _check_keys(part, checked)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in keys:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key '{key.value}' occurs twice", problem_mark=key.start_mark
                    )
                keys.add((key.tag, key.value))
            _check_keys(value, checked)
