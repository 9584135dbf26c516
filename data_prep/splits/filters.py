"""Filters: trivial rows go, hard rows stay (HiEval), and so do questions that nobody excluded.

HiEval's paper applies its two filters in this order: some 50,000 labelled samples of quick scores,
then 40,000, then 25,996. Excluded questions are named by hashes, so that nobody can read them.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from data_prep.splits.near_duplicates import cluster_examples
from judging.errors import CustosError
from judging.files.records import decode_json
from judging.tasks import get_task
from judging.types import LabelledExample, score_of

MIN_WORDS = 3
"""Fewest words of a response that is not trivial. The paper names no number; this one is ours."""

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"  # each kana or ideograph counts: no spaces there
    r"|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
)

_GAP = re.compile(r"[\W_]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def count_words(text: str) -> int:
    """Count runs of letters and digits; in Chinese and Japanese, characters.

    ``"(B)"`` has one word, ``"x = 12"`` two, ``"3.5"`` two, ``"---"`` none.
    """
    return len(_WORD.findall(unicodedata.normalize("NFKC", text)))


def drop_trivial(
    examples: Iterable[LabelledExample], min_words: int = MIN_WORDS
) -> Iterator[LabelledExample]:
    """Yield the examples of which at least one response has ``min_words`` words or more.

    A response is trivial if it has fewer: an option letter, a bare number, nothing at all. Such a
    row can be graded by comparing strings and teaches a judge little.
    """
    for example in examples:
        if any(count_words(response) >= min_words for response in example.responses):
            yield example


def keep_contested(
    examples: Iterable[LabelledExample],
    verdicts: Mapping[str, Sequence[str | None]],
    min_disagreeing: int = 3,
    num_models: int = 6,
) -> Iterator[LabelledExample]:
    """Yield the examples on which enough models disagree with the human label.

    Scores are compared: a label of error analysis counts without its error type. Of each example,
    by its id, ``verdicts`` has the labels of ``num_models``; ``None`` neither agrees nor disagrees.
    Raise ``CustosError`` if the numbers do not fit together, two examples have one id, or an
    example lacks verdicts, each of a score that its task has under some rubric.
    """
    if not 1 <= min_disagreeing <= num_models:
        raise CustosError(
            f"{min_disagreeing} disagreeing models: give a number from 1 to {num_models}"
        )
    ids: set[str] = set()
    for example in examples:
        if example.id in ids:
            raise CustosError(f"example id '{example.id}' occurs twice; verdicts go by id")
        ids.add(example.id)
        labels = verdicts.get(example.id, ())
        if len(labels) != num_models:
            raise CustosError(
                f"example '{example.id}' has {len(labels)} model verdicts, expected {num_models}"
            )
        scores = [score_of(label) for label in labels if label is not None]
        known = _scores_of(example.task)
        if unknown := [score for score in scores if score not in known]:
            raise CustosError(
                f"example '{example.id}': verdict '{unknown[0]}' is not one of {', '.join(known)}"
            )
        if sum(score != score_of(example.label) for score in scores) >= min_disagreeing:
            yield example


@cache
def _scores_of(task: str) -> tuple[str, ...]:
    judge = get_task(task)
    labels = (label for rubric in judge.rows_by_rubric() for label in judge.labels(rubric))
    return tuple(dict.fromkeys(map(score_of, labels)))


def read_verdicts(path: Path) -> dict[str, list[str | None]]:
    """Read a file of verdicts: a JSON object from id to the labels of several judges.

    Raise ``CustosError`` if it cannot be read or is of another shape.
    """
    try:
        rows = decode_json(path.read_bytes())
    except (OSError, CustosError) as error:
        raise CustosError(f"{path}: cannot read the verdicts: {error}") from None
    if not isinstance(rows, dict):
        kind = type(rows).__name__
        raise CustosError(f"{path}: expected an object from id to labels, got {kind}")
    for name, labels in rows.items():
        of_labels = labels if isinstance(labels, list) else [0]
        if not all(label is None or isinstance(label, str) for label in of_labels):
            raise CustosError(f"{path}: entry '{name}': expected a list of labels, got {labels!r}")
    return rows


def excluded_hash(question: str) -> str:
    """Compute the hash that names a question in a file of excluded ones.

    It is the SHA-256, in hexadecimal, of the lower-case question in UTF-8, in which everything but
    letters and digits is one space, without spaces at the ends.
    """
    return hashlib.sha256(_GAP.sub(" ", question.lower()).strip().encode()).hexdigest()


def read_excluded(path: Path) -> frozenset[str]:
    """Read hashes of questions, one a line.

    Raise ``CustosError`` if the file is missing, empty, or holds a line that is no hash.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CustosError(f"{path}: cannot be read as hashes of questions: {error}") from None
    hashes = {number: line.split() for number, line in enumerate(lines, 1) if line.strip()}
    for number, words in hashes.items():
        if not _SHA256.fullmatch(words[0]):
            raise CustosError(
                f"{path} row {number}: expected the SHA-256 of a question, 64 hexadecimal digits"
            )
    if not hashes:
        raise CustosError(f"{path}: holds no hash of a question")
    return frozenset(words[0] for words in hashes.values())


def without_excluded(
    examples: Sequence[LabelledExample], excluded: frozenset[str]
) -> list[LabelledExample]:
    """Keep the examples that ask neither an excluded question nor a near-duplicate of one."""
    clusters = list(zip(cluster_examples(examples), examples, strict=True))
    out = {cluster for cluster, each in clusters if excluded_hash(each.question) in excluded}
    return [example for cluster, example in clusters if cluster not in out]
