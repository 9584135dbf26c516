"""Pairs on disk."""

from pathlib import Path

from data_prep.made.pairs import generate_pairs, split_pairs, write_pairs
from data_prep.splits.splits import HeldOut
from judging.files.records import read_records
from judging.types import LabelledExample


def test_splits_share_no_question_and_pictures_are_found(tmp_path: Path) -> None:
    rows, test = (
        list(generate_pairs(160, 5, "train", 0.1)),
        list(generate_pairs(30, 5, "test", 0.1)),
    )
    splits = split_pairs(rows, test, HeldOut(val=10, cal=12, test=30), seed=0)
    assert sum(map(len, splits.values())) == 190
    questions = {split: {r.pair.metadata["asked"] for r in rows} for split, rows in splits.items()}
    for a in questions:
        for b in questions:
            assert a == b or not questions[a] & questions[b]
    written = write_pairs(
        tmp_path,
        splits,
        both_orders=True,
        source={},
        held_out=HeldOut(val=10, cal=12, test=30),
        seed=0,
        command="test",
    )
    assert len(written["train"]) == 2 * len(splits["train"])
    for split in ("train", "val", "cal", "test"):
        pairs = [row for _, row in read_records(tmp_path / f"{split}.jsonl", LabelledExample)]
        scores = tmp_path / "scores" / f"{split}.jsonl"
        singles = [row for _, row in read_records(scores, LabelledExample)]
        assert len(singles) == 2 * len(splits[split])
        for example in (*pairs, *singles):
            assert example.split == split
            assert all(Path(name).is_file() for name in example.images)
    assert any(row.png for rows in splits.values() for row in rows)
