"""Made-up examples from the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from judging.types import LabelledExample
from tests.cli.prep.made_up import SPLITS, read, run


def test_synthetic_tests_on_held_out_wordings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def generate_examples(
        num_rows: int, seed: int, wordings: str, worlds: str
    ) -> Iterator[LabelledExample]:
        calls.append((num_rows, seed, wordings))
        for i in range(num_rows):
            yield LabelledExample(
                id=f"{wordings}-{i}",
                question=f"{wordings} question {i}",
                responses=("thing",),
                label="Correct",
                group="shared" if i == 0 else f"{wordings} {i}",
            )

    monkeypatch.setattr("cli.prep.synthetic.generate_examples", generate_examples)
    result = run("synthetic", "--out", tmp_path, "--rows", 100, "--seed", 5, "--test", 0.2)
    assert sorted(calls) == [(20, 5, "test"), (80, 5, "train")]
    for split in SPLITS:
        origins = {e.id.split("-")[0] for e in read(tmp_path, split)}
        assert origins == {"test" if split == "test" else "train"}
    assert len(read(tmp_path, "test")) == 20
    assert sum(len(read(tmp_path, split)) for split in SPLITS) == 99, "one shares a group with test"
    assert "left out: 1 near duplicates of test" in result.stdout
