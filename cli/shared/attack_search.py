"""The search for suffixes of ``custos attack``: kept on disk answer by answer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from cli.shared.progress import counting_bar
from clients.kept_verdicts import Grader, request_key
from evaluation.attacks.search import SearchResult, SuffixSearch
from judging.files.kept_work import KeptFile, KeptLine, Origin
from judging.types import LabelledExample


class KeptSearch(KeptLine):
    """A line of the file: what became of one wrong answer."""

    number: int
    result: SearchResult

    @property
    def origin(self) -> Origin:
        """Return the number of the answer and the line's key."""
        return self.number, self.key


def search_file(path: Path) -> KeptFile[KeptSearch]:
    """Return the file that keeps the results of a search."""
    return KeptFile(path, KeptSearch)


def search_showing(
    file: KeptFile[KeptSearch],
    judge: Grader,
    examples: Sequence[LabelledExample],
    suffixes: Sequence[str],
) -> list[SearchResult]:
    """Search for suffixes behind a progress bar; go on where an earlier run stopped.

    Args:
        file: Keeps the results.
        judge: Judge that is attacked.
        examples: Wrong answers.
        suffixes: The pool.
    """
    if not examples:
        return []
    search = SuffixSearch(judge.grade, suffixes)
    pool = hashlib.sha256("\0".join(suffixes).encode()).hexdigest()

    def origin(numbered: tuple[int, LabelledExample]) -> Origin:
        number, example = numbered
        key = f"{request_key(judge, example.request())}/{pool}"
        return number, hashlib.sha256(key.encode()).hexdigest()

    def work(answers: Sequence[tuple[int, LabelledExample]]) -> Iterator[KeptSearch]:
        for answer in answers:
            number, key = origin(answer)
            assert isinstance(number, int)
            yield KeptSearch(number=number, key=key, result=search.attack(answer[1]))

    # What earlier results have taught decides which suffixes come first.
    for line in file.lines():
        search.learn(line.result)
    with counting_bar("searching", len(examples)) as show:
        for num_done in file.fill(lambda: enumerate(examples, 1), origin, work, batch=1):
            show(num_done)
    return [line.result for line in file.lines()]
