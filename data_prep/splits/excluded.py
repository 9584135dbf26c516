"""Questions to leave out of a data set, named by hashes so that nobody can read them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from data_prep.splits.near_duplicates import cluster_examples
from judging.errors import CustosError
from judging.types import LabelledExample

_GAP = re.compile(r"[\W_]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def excluded_hash(question: str) -> str:
    """Return the hash that names a question in such a file.

    It is the SHA-256, in hexadecimal, of the lower-case question in UTF-8, in which everything but
    letters and digits is one space, without spaces at the ends.
    """
    return hashlib.sha256(_GAP.sub(" ", question.lower()).strip().encode()).hexdigest()


def read_excluded(path: Path) -> frozenset[str]:
    """Read hashes of questions, one a line.

    Raises:
        CustosError: If the file is missing, empty, or holds a line that is no hash.
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
    """Return the examples that ask neither an excluded question nor a near-duplicate of one."""
    clusters = cluster_examples(examples)
    out = {
        cluster
        for cluster, example in zip(clusters, examples, strict=True)
        if excluded_hash(example.question) in excluded
    }
    return [e for e, cluster in zip(examples, clusters, strict=True) if cluster not in out]
