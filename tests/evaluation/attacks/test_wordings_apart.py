"""The attacks share no wording with the hard responses that judges are trained on."""

import re
from collections.abc import Iterable, Iterator

from data_prep.made.hard import kinds
from data_prep.made.words.wordings import words_of
from evaluation.attacks.items import attack_words, families
from evaluation.attacks.rows import largest_pool, suffix_pool

SIZE = 5
SLOT = re.compile(r"\{\w+\}")
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
"""A character of a script without spaces, or a word of another script."""

PARTS = words_of("hard")["parts"]
TRAINING = [
    *(frame.template for kind in kinds().values() for frame in kind.frames),
    *(word for name in ("openings", "closings", "fillers") for word in PARTS[name]),
]
ATTACKS = [
    *(wording for family in families().values() for wording in family.wordings.values()),
    *attack_words()["padding"].splitlines(),
    *suffix_pool(largest_pool()),
]


def words(text: str) -> list[str]:
    return WORD.findall(text.casefold())


def ngrams(wordings: Iterable[str]) -> Iterator[str]:
    """Runs of fixed words; a slot ends a run."""
    for wording in wordings:
        for segment in SLOT.split(wording.replace("{{", " ").replace("}}", " ")):
            fixed = words(segment)
            for start in range(len(fixed) - SIZE + 1):
                yield " ".join(fixed[start : start + SIZE])


def whole(wordings: Iterable[str]) -> set[str]:
    """Wordings of two fixed words or more, whatever their slots are called."""
    return {
        " ".join(SLOT.sub(" \N{WHITE SQUARE} ", wording).casefold().split())
        for wording in wordings
        if len(words(SLOT.sub(" ", wording))) >= 2
    }


def test_no_run_of_five_words_is_shared() -> None:
    assert set(ngrams(TRAINING)) & set(ngrams(ATTACKS)) == set()


def test_no_wording_is_shared() -> None:
    assert whole(TRAINING) & whole(ATTACKS) == set()


def test_the_comparison_would_see_a_shared_wording() -> None:
    copied = next(text for text in TRAINING if len(words(SLOT.split(text)[0])) >= SIZE)
    assert set(ngrams([copied])) & set(ngrams(TRAINING))
    assert len(set(ngrams(TRAINING))) > 500 and len(set(ngrams(ATTACKS))) > 200
    assert whole(["X is {a}, not {b}"]) == whole(["x is {yes}, not {no}"])
    assert list(ngrams(["一二三四五{x}六"])) == ["一 二 三 四 五"]
