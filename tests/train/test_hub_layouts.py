"""Checkpoints with the files of the hub, from training to a served judge."""

from pathlib import Path
from typing import Any

import pytest

from clients.messages import picture_url
from judging.judge import Judge
from judging.judge.export import export_merged
from judging.types import JudgeRequest, LabelledExample
from serve.queue.service import Service
from tests.conftest import HubFolders
from tests.hub import LAYOUTS
from tests.serve.sockets import serving
from tests.tiny import save_picture
from tests.train.made_up import analysed, critique_pair, example, recipe_file
from train import hieval_stage1, hieval_stage2, truthful_judge
from train.launch.run_plan import plan_run

# Without its CUDA kernels, Qwen3.5 writes critiques slowly.
CRITIQUE_LAYOUTS = [
    pytest.param(name, marks=pytest.mark.slow if name == "Qwen3.5-9B" else ()) for name in LAYOUTS
]
UNTESTED: dict[str, Any] = {"data": {"test": None}}


def _train(folder: Path, script: Any, backbone: str, rows: Any, **overrides: Any) -> Judge:
    """Run a script for two steps, calibration and report included, and load the judge.

    Where the judge writes critiques, ``UNTESTED`` leaves out the report, which takes most time.
    """
    folder.mkdir()
    splits = {"train": (8, 0), "val": (2, 100), "cal": (6, 200), "test": (2, 300)}
    recipe = recipe_file(
        folder,
        backbone,
        {name: rows(*part) for name, part in splits.items()},
        adapter={"r": 2, "alpha": 4},
        optim={"lr": 5e-3, "batch_size": 4, "token_budget": 600},
        **overrides,
    )
    script.main(["--config", str(recipe)])
    judge = Judge.load(str(folder / "run"), device="cpu")
    assert judge.calibration is not None
    return judge


def _served(judge: Judge, requests: list[JudgeRequest], status: str = "scored") -> None:
    """Grade here and through the service; the verdicts must be the same."""
    verdicts = list(judge.grade(requests))
    assert [verdict.status for verdict in verdicts] == [status] * len(requests)
    rows = [request.model_dump(mode="json", exclude_unset=True) for request in requests]
    for row in rows:  # a service does not read its own machine's files
        row["images"] = [picture_url(path) for path in row.get("images", ())]
    with serving(Service({"judge": judge})) as client:
        answer = client.post("/judge", json={"requests": rows})
    assert answer.status_code == 200, answer.text
    served = [(row["label"], row["confidence"]) for row in answer.json()["verdicts"]]
    assert served == [
        (verdict.label, pytest.approx(verdict.confidence, abs=1e-2)) for verdict in verdicts
    ]


def _pairs(count: int, start: int) -> list[LabelledExample]:
    """Pairs with critiques of few tokens, some labelled "None", so that a judge is calibrated."""
    labels = [{"label": "None"} if i % 3 == 2 else {} for i in range(start, start + count)]
    return [
        critique_pair(i, critique_tokens=3, question=f"Which river {i}?", **label)
        for i, label in enumerate(labels, start)
    ]


@pytest.mark.parametrize("name", LAYOUTS)
def test_text_and_pictures(name: str, hub_folders: HubFolders, tmp_path: Path) -> None:
    def rows(count: int, start: int) -> list[LabelledExample]:
        return analysed(tmp_path, count, start)

    judge = _train(tmp_path / "ea", hieval_stage2, hub_folders(name), rows)
    _served(judge, [row.request() for row in rows(2, 0)])


@pytest.mark.parametrize("name", CRITIQUE_LAYOUTS)
def test_pairs_with_critiques(name: str, hub_folders: HubFolders, tmp_path: Path) -> None:
    judge = _train(tmp_path / "pair", truthful_judge, hub_folders(name), _pairs, **UNTESTED)
    _served(judge, [row.request() for row in _pairs(2, 0)], "truncated")


def test_a_text_family(hub_folders: HubFolders, tmp_path: Path) -> None:
    """Trained, served, planned, and exported as a checkpoint that scores as the judge does."""

    def rows(count: int, start: int) -> list[LabelledExample]:
        return [example(i, question=f"Which river {i}?") for i in range(start, start + count)]

    folder = tmp_path / "qs"
    judge = _train(folder, hieval_stage1, hub_folders("Qwen2.5-0.5B-Instruct"), rows)
    assert judge.card and judge.card.max_pixels is None
    _served(judge, [row.request() for row in rows(4, 0)])
    assert not (folder / "run/preprocessor_config.json").exists()
    planned = plan_run(str(folder / "tiny.yaml"), ["method=focal"], gpus=0, memory=None, rate=None)
    assert planned.memory.pictures == 0 and planned.attention == "text custos_grouped"
    exported = export_merged(str(folder / "run"), tmp_path / "merged", device="cpu")
    assert exported.parity.num_rows == 1 and exported.parity.largest < 1e-4
    assert "AutoTokenizer" in (tmp_path / "merged/README.md").read_text(encoding="utf-8")


def test_a_text_family_with_critiques(hub_folders: HubFolders, tmp_path: Path) -> None:
    _train(tmp_path / "pair", truthful_judge, hub_folders("Qwen3-4B"), _pairs, **UNTESTED)


def test_pictures_are_limited_from_recipe_to_served_judge(
    tmp_path: Path, hub_folders: HubFolders
) -> None:
    photograph = save_picture(tmp_path / "photograph.jpg", 800, 600)

    def rows(count: int, start: int) -> list[LabelledExample]:
        made = analysed(tmp_path, count, start)
        return [row.model_copy(update={"images": (photograph,)}) for row in made]

    backbone, run = hub_folders("Qwen3-VL-4B-Instruct"), tmp_path / "run"
    judge = _train(run, hieval_stage2, backbone, rows, run={"max_pixels": 100_000})
    assert judge.card and (judge.card.min_pixels, judge.card.max_pixels) == (65536, 100_000)
    assert judge.backbone.pixels.max_pixels == 100_000
    log = (run / "run/train.log").read_text(encoding="utf-8")
    assert "1 of 1 pictures are scaled down to 0.10 MP\n" in log
    _served(judge, [row.request() for row in rows(1, 400)])
