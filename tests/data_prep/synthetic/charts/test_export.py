"""Examples about pictures on disk."""

import hashlib
from pathlib import Path

from data_prep.made.charts.rows import write_charts
from data_prep.splits.manifest import load_generic
from experiments.cost.scoring_speed import generate_rows
from judging.files.pictures import read_image
from judging.files.records import read_records
from judging.types import LabelledExample


def test_written_pictures_are_named_by_their_content(tmp_path: Path) -> None:
    rows = list(generate_rows(24, 5, "train"))
    manifests = [
        write_charts(
            tmp_path / name, {"rows.jsonl": rows}, source={"name": "charts"}, command="custos"
        )
        for name in ("first", "second")
    ]
    assert manifests[0] == manifests[1]
    files = sorted(path.name for path in (tmp_path / "first" / "images").iterdir())
    assert len(files) == manifests[0]["images"] < 24
    for name in files:
        content = (tmp_path / "first" / "images" / name).read_bytes()
        assert name == f"{hashlib.sha256(content).hexdigest()[:16]}.png"
    first, second = (tmp_path / name / "rows.jsonl" for name in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()
    expected = [
        r.example.model_copy(update={"images": (str(first.parent / r.example.images[0]),)})
        for r in rows
    ]
    assert [row for _, row in read_records(first, LabelledExample)] == expected
    for row in load_generic(first):
        assert all(side % 28 == 0 for side in read_image(row.images[0]).size)
