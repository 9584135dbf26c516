"""The page of judges shows the report of the very run that is served."""

import json
import shutil
from pathlib import Path

from serve.pages.cards import card
from tests.serve.made_up import FakeJudge

SHIPPED = Path(__file__).parents[3] / "judges" / "embedded-qs"


def test_the_report_is_that_of_the_judge_s_own_folder(tmp_path: Path) -> None:
    report = json.loads((SHIPPED / "report.json").read_text())
    folder = tmp_path / "embedded-qs"
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps({**report, "n": 7}))
    shutil.copy(SHIPPED / "README.md", folder)
    judge = FakeJudge("embedded-qs")
    assert card("qs", judge)["n"] is None  # only its name is that of the shipped one
    judge.folder = folder
    fields = card("qs", judge)
    assert (fields["name"], fields["n"]) == ("qs", 7)
    assert fields["rows"][0]["name"] == "embedded-qs"
    assert fields["unmeasured"] == []
    report["slices"]["task"] = {"charthal/irrelevant": {}}
    (folder / "report.json").write_text(json.dumps(report))
    assert card("qs", judge)["unmeasured"] == ["hieval-qs"]
