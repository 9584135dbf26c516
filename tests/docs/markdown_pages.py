"""The Markdown of the documentation, taken apart: pages, links, blocks, spans, commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown import Markdown

from docs.hooks.site import GENERATED

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

SITE_PAGES = sorted(DOCS.rglob("*.md"))
ROOT_PAGES = [ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG")]
PAGES = [*ROOT_PAGES, *SITE_PAGES]

FENCE = re.compile(r"^( *)```(\w*)(?: title=\"([^\"]+)\")?\n(.*?)^\1```$", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block of code."""

    language: str
    title: str
    """Name of the file that the reader is to save it as; empty for most."""
    text: str


def name_of(page: Path) -> str:
    """Return a page's path from the root of the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, without their indentation."""
    return [
        Block(language, title, re.sub(rf"^{indent}", "", text, flags=re.M))
        for indent, language, title, text in FENCE.findall(page.read_text(encoding="utf-8"))
    ]


def prose(page: Path) -> str:
    """Return the text of a page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def spans(page: Path) -> list[str]:
    """Return the code within the sentences and tables of a page, each span on one line."""
    paragraphs = prose(page).split("\n\n")
    return [" ".join(span.split()) for text in paragraphs for span in SPAN.findall(text)]


def links(page: Path) -> Iterator[str]:
    """Yield the targets of a page's links and pictures that lie in the repository."""
    for target in LINK.findall(prose(page)):
        if not re.match(r"[a-z]+://|mailto:", target):
            yield target


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page, as the site and the usual viewers of Markdown name them."""
    if page.is_file():
        return _anchors(page.read_text(encoding="utf-8"))
    return _anchors(GENERATED[page.relative_to(DOCS).as_posix()]())


def _anchors(text: str) -> frozenset[str]:
    reader = Markdown(extensions=["toc", "attr_list"])
    reader.convert(FENCE.sub("", text))  # its own rule for fences does not know titles
    pending = list(reader.toc_tokens)
    ids = set()
    while pending:
        token = pending.pop()
        ids.add(token["id"])
        pending += token["children"]
    return frozenset(ids)


PROGRAMS = ("custos", "python", "accelerate", "make", "pytest")
SEPARATORS = {"|", "||", "&&", ";", "&", ">", "<"}
ASSIGNMENT = re.compile(r"[A-Z_]+=")


def commands_of(page: Path) -> Iterator[list[str]]:
    """Yield the commands of a page that start our programs, from its blocks and sentences."""
    for block in blocks(page):
        if block.language == "sh":
            yield from commands_in(block.text)
    for span in spans(page):
        yield from commands_in(span)


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield the commands in a piece of shell: words, without variables in front of them."""
    for line in text.replace("\\\n", " ").splitlines() if "'{" not in text else [text]:
        words: list[str] = []
        for word in [*_words(line), ";"]:
            if word in SEPARATORS:
                if words and words[0] in PROGRAMS:
                    yield words
                words = []
            elif words or not ASSIGNMENT.match(word):
                words.append(word)


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&<>")
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:  # a span of code with a single quotation mark is no command
        return []
