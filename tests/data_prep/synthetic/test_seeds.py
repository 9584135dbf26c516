import hashlib
from random import Random

from data_prep.made.words.wordings import seeded_rng


def test_draws_depend_on_the_key_alone() -> None:
    draws = [seeded_rng("pairs", 1, "train", 0.1, 7).random() for _ in range(2)]
    assert draws[0] == draws[1]
    assert draws[0] != seeded_rng("pairs", 1, "train", 0.1, 8).random()


def test_parts_of_a_key_are_kept_apart() -> None:
    assert seeded_rng("a", "bc").random() != seeded_rng("ab", "c").random()


def test_the_key_is_hashed_as_data_made_earlier_were() -> None:
    digest = hashlib.sha256(b"charts\x1f1\x1ftrain\x1funit\x1f0").digest()
    expected = Random(int.from_bytes(digest[:8], "big")).random()
    assert seeded_rng("charts", 1, "train", "unit", 0).random() == expected
