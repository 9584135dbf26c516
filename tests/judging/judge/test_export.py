"""Judges as plain checkpoints: what is written, what is compared, and what a failure leaves."""

import errno
import json
import math
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.errors import CustosError
from judging.files.pictures import PixelLimits
from judging.judge import Judge
from judging.judge import export as module
from judging.judge.export import Parity, export_merged, largest_difference
from judging.models.backbones import load_backbone
from judging.types import JudgeRequest
from tests.conftest import HubFolders
from tests.judging.made_up import ask, save_run

MAIN = ("Qwen2.5-VL-7B-Instruct", "Qwen3-VL-4B-Instruct")
LIMITS = PixelLimits(4_096, 50_000)


@pytest.fixture(scope="module")
def runs(hub_folders: HubFolders, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, made = tmp_path_factory.mktemp("runs"), {}
    for name in MAIN:
        backbone = load_backbone(hub_folders(name), dtype="float32", device="cpu")
        rubrics = ("plain/any", "plain/all")
        made[name] = save_run(
            folder / name, backbone.with_pixels(*LIMITS), rubrics, shows_all_pictures=True
        )
        (made[name] / "recipe.yaml").write_text("run: {}\n", encoding="utf-8")
    return made


@pytest.fixture
def run(runs: dict[str, Path]) -> str:
    return str(runs[MAIN[0]])


@pytest.mark.parametrize("name", MAIN)
def test_transformers_scores_the_export_as_the_judge_does(
    name: str, runs: dict[str, Path], hub_folders: HubFolders, pictures: list[str], tmp_path: Path
) -> None:
    requests: list[JudgeRequest] = [
        ask(),
        ask("Nine.", images=(pictures[0],)),
        ask("Nine boats, said the keeper. " * 9, images=(pictures[1], pictures[2])),
    ]
    folder = tmp_path / "merged"
    done = export_merged(str(runs[name]), folder, requests, device="cpu", dtype="float32")
    assert done.parity.largest < 1e-5
    assert done.parity.num_rows == 3
    published = Path(hub_folders(name))
    files = {path.name for path in folder.iterdir()}
    assert files == {path.name for path in published.iterdir()} | {"README.md", "judge"}
    of_judge = {path.name for path in (folder / "judge").iterdir()}
    assert of_judge == {"judge.json", "recipe.yaml", "README.md"}
    changed = {"config.json", "preprocessor_config.json", "model.safetensors.index.json"}
    for path in published.iterdir():
        if path.suffix != ".safetensors" and path.name not in changed:
            assert path.read_bytes() == (folder / path.name).read_bytes(), path.name
    indices = [
        json.loads((each / "model.safetensors.index.json").read_text())["weight_map"]
        for each in (published, folder)
    ]
    assert indices[0] == indices[1]
    assert {path.stat().st_mode & 0o777 for path in folder.glob("*.*")} == {0o644}
    assert load_backbone(str(folder), weights=False).pixels == LIMITS
    merged, judge = (
        Judge.load(source, device="cpu", dtype="float32", pixels=pixels)
        for source, pixels in ((str(folder), LIMITS), (str(runs[name]), None))
    )
    request = ask(mode="score")
    assert merged.logprobs([request]) == pytest.approx(judge.logprobs([request]), abs=1e-5)


def test_the_command_says_how_far_the_scores_are_apart(run: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(ask().model_dump_json(exclude_unset=True) + "\n", encoding="utf-8")
    folder = tmp_path / "merged"
    result = CliRunner().invoke(app, ["export", run, "--merged", str(folder), "--rows", str(rows)])
    assert result.exit_code == 0, result.output
    assert "nats from the judge's (3 labels of 1 rows)" in result.stdout
    assert json.loads((folder / "config.json").read_text())["torch_dtype"] == "bfloat16"
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert "AutoModelForImageTextToText" in readme and "vllm serve merged" in readme


def test_a_judge_on_random_weights_says_so(run: str, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "trial")
    card = json.loads((tmp_path / "trial" / "judge.json").read_text())
    (tmp_path / "trial" / "judge.json").write_text(json.dumps({**card, "random_weights": True}))
    export_merged(str(tmp_path / "trial"), tmp_path / "merged", [ask()], device="cpu")
    assert "it knows nothing" in (tmp_path / "merged" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("source", "reason"),
    [("embedded", "without an adapter"), ("no-such-judge", "there is no judge of this name")],
)
def test_what_is_no_trained_judge_is_refused(source: str, reason: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["export", source, "--merged", str(tmp_path / "merged")])
    assert result.exit_code == 2
    assert reason in result.stderr and result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_export_leaves_nothing(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        export_merged(run, tmp_path / "merged", [ask()], device="cpu")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_exported_leaves_nothing(
    run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CustosError, match="exists already"):
        export_merged(run, tmp_path)
    with pytest.raises(CustosError, match="was trained for hieval-qs"):
        export_merged(run, tmp_path / "merged", [ask(task="hieval-ea")], device="cpu")
    monkeypatch.setattr(module, "judge_scores", lambda judge, requests: [[-9.0, -9.0, -9.0]])
    with pytest.raises(CustosError, match="do not score as the judge does"):
        export_merged(run, tmp_path / "merged", [ask()], device="cpu")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("scores", [[[-1.0, math.nan]], [[math.nan, -1.0]]])
def test_a_score_that_is_no_number_is_no_parity(scores: list[list[float]]) -> None:
    largest = largest_difference([[-1.0, -1.0]], scores)
    parity = Parity(num_rows=1, num_scores=2, largest=largest, model_class="Model")
    with pytest.raises(CustosError, match="nan nats apart"):
        parity.check()
