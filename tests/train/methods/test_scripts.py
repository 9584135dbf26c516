"""Both scripts leave a judge: a folder that ``custos eval`` reads, with a history and a report."""

import json
from pathlib import Path
from typing import Any

import pytest
from accelerate.state import AcceleratorState
from safetensors.torch import load_file
from typer.testing import CliRunner

from cli.main import app
from judging.errors import CustosError
from judging.models.adapters import ADAPTER_FILE
from tests.tiny import save_picture
from tests.train.made_up import critique_pair, labelled_pair, recipe_file, write_split
from train import critique_dpo, critique_grpo, truthful_judge
from train.launch.run_plan import plan_run
from train.methods.dpo import Drawing
from train.methods.own_critiques import CritiqueRun, _Reports

SCRIPTS: dict[str, Any] = {"critique_dpo": critique_dpo, "critique_grpo": critique_grpo}
SECTIONS: dict[str, Any] = {
    "critique_dpo": {"dpo": {"least_margin": 0.0}},
    "critique_grpo": {"critiques": {"drawn": 2, "max_tokens": 6, "micro_batch": 4}},
}


def write_recipe(folder: Path, backbone: str, **sections: Any) -> Path:
    """Write a recipe in float32, with rows for all splits; sections are merged."""
    parts = {"train": (0, 8), "val": (100, 3), "cal": (200, 6), "test": (300, 4)}
    labels = {5: {"label": "None"}}  # calibrations need every label
    rows = {
        name: [
            labelled_pair(
                start + i,
                question=f"Which {name} river {i}?",
                critique_tokens=6,
                **labels.get(i, {}),
            )
            for i in range(count)
        ]
        for name, (start, count) in parts.items()
    }
    given: dict[str, Any] = {
        "critiques": {"drawn": 2, "max_tokens": 6},
        "optim": {"batch_size": 4},
        "run": {"log_every": 1},
    }
    merged = {name: given.get(name, {}) | sections.get(name, {}) for name in given | sections}
    return recipe_file(folder, backbone, rows, **merged)


@pytest.fixture(scope="module")
def start(small: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judge of pairs that was trained on critiques."""
    folder = tmp_path_factory.mktemp("start")
    rows = [critique_pair(number, question=f"Which start {number}?") for number in range(8)]
    path = recipe_file(folder, small, {"train": rows[:6], "val": rows[6:]}, optim={"batch_size": 4})
    truthful_judge.main(["--config", str(path)])
    return folder / "run"


@pytest.fixture(scope="module", params=SCRIPTS)
def run(
    request: pytest.FixtureRequest,
    start: Path,
    small: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Run folder of a script."""
    folder = tmp_path_factory.mktemp(request.param)
    more = {"adapter": {"init": str(start)}, "run": {"select": "last"}}
    write_recipe(folder, small, **more, **SECTIONS[request.param])
    start_again(folder / "run")
    return folder / "run"


def test_the_adapter_has_learned(run: Path, start: Path) -> None:
    before, after = load_file(start / ADAPTER_FILE), load_file(run / ADAPTER_FILE)
    assert before.keys() == after.keys()
    assert max((before[name] - after[name]).abs().max() for name in before) > 1e-4
    assert not list(run.glob("**/ref")), "TRL's copy of the start is not a part of the judge"


def test_the_history_has_losses_and_validations(run: Path) -> None:
    entries = json.loads((run / "history.json").read_text("utf-8"))
    validations = [entry for entry in entries if "val_nll" in entry]
    assert [entry["step"] for entry in validations] == [0, 1, 2]
    assert all({"val_accuracy", "val_flips"} <= entry.keys() for entry in validations)
    losses = [entry for entry in entries if "train_loss" in entry]
    assert [entry["step"] for entry in losses] == [1, 2]
    name = "margin" if run.parent.name.startswith("critique_dpo") else "reward"
    assert all(name in entry for entry in losses)
    assert (run / "learning_curve.png").is_file()


def test_custos_eval_reads_it(run: Path, tmp_path: Path) -> None:
    data = str(run.parent / "test.jsonl")
    result = CliRunner().invoke(
        app, ["eval", str(run), "--data", data, "--out", str(tmp_path), "--no-zero-shot"]
    )
    assert result.exit_code == 0, result.output
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert (report["n"], report["coverage"]) == (4, 1.0)
    own = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert own["against_start"]["start"].endswith("run")
    assert own["metrics"]["accuracy"]["value"] == report["metrics"]["accuracy"]["value"]
    assert (run / "calibration.json").is_file()


def start_again(run: Path, *keys: str) -> None:
    """Give the command of a run, perhaps once more."""
    AcceleratorState._reset_state(reset_partial_state=True)
    script = next(name for name in SCRIPTS if run.parent.name.startswith(name))
    SCRIPTS[script].main(["--config", str(run.parent / "tiny.yaml"), *keys])


def test_a_stopped_run_goes_on(
    run: Path, unfinished: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped in its second step; the judge has the same bytes in the end."""
    stopped = run.parent / "stopped"
    keys = (f"run.output={stopped}", "run.save_every=1")

    def stop(reports: Any, *arguments: Any, **more: Any) -> None:
        if reports.run.progress.step == 1:
            raise KeyboardInterrupt
        count(reports, *arguments, **more)

    with monkeypatch.context() as patch:
        count = _Reports.on_step_end
        patch.setattr(_Reports, "on_step_end", stop)
        with pytest.raises(SystemExit):
            start_again(run, *keys)
    assert [path.name for path in stopped.glob("checkpoint-*")] == ["checkpoint-000001"]
    start_again(run, *keys)
    best, expected = stopped / "best-000002", run / "best-000002"
    assert (best / ADAPTER_FILE).read_bytes() == (expected / ADAPTER_FILE).read_bytes()
    state, of_run = (
        json.loads((folder / "checkpoint-000002" / "state.json").read_text("utf-8"))
        for folder in (stopped, run)
    )
    assert state["history"] == of_run["history"]


def test_a_gradient_that_is_not_finite_ends_the_run_before_its_step(
    run: Path, unfinished: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from transformers import Trainer

    def spoil(trainer: Trainer, *arguments: Any) -> Any:
        loss = train(trainer, *arguments)
        if trainer.state.global_step == 1:
            for parameter in trainer.model.parameters():
                if parameter.grad is not None:
                    parameter.grad.fill_(float("nan"))
        return loss

    train = Trainer.training_step
    monkeypatch.setattr(Trainer, "training_step", spoil)
    folder = run.parent / "not-finite"
    with pytest.raises(SystemExit):
        start_again(run, f"run.output={folder}", "run.log_every=50", "run.save_every=1")
    assert "error: step 2: not finite: gradient norm nan; lower optim.lr" in capsys.readouterr().err
    weights = load_file(folder / "checkpoint-000001" / "adapter.safetensors")
    assert all(tensor.isfinite().all() for tensor in weights.values())
    assert not (folder / "checkpoint-000002").exists()


@pytest.fixture
def unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    """End runs after their last step, as what follows takes most of the time."""
    monkeypatch.setattr("train.run.finish_run", lambda *_: None)


def test_a_finished_run_trains_no_more(
    run: Path, unfinished: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CritiqueRun, "fit", lambda *_: pytest.fail("trained again"))
    start_again(run)


def test_every_pass_takes_every_row(
    run: Path, unfinished: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three passes over 8 rows in steps of 5 are 5 steps, the last filled up by a fourth pass."""
    taken: list[int] = []
    monkeypatch.setattr(CritiqueRun, "fit", lambda of_run, _: taken.extend(of_run.items_left))
    keys = ("optim.epochs=3", "optim.batch_size=5", "critiques.micro_batch=1")
    start_again(run, *keys, f"run.output={run.parent / 'passes'}")
    num_items = len(set(taken))
    assert len(taken) == -(-num_items * 3 // 5) * 5
    for first in range(0, 3 * num_items, num_items):
        assert sorted(taken[first : first + num_items]) == list(range(num_items))
    assert taken[:num_items] != taken[num_items : 2 * num_items]


@pytest.mark.parametrize("run", ["critique_dpo"], indirect=True)
def test_kept_preferences_make_the_same_judge(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Drawing, "fill", lambda *_: pytest.fail("drawn again"))
    again = run.parent / "again"
    keys = (f"run.output={again}", "data.cal=null", "data.test=null")
    start_again(run, f"dpo.preferences={run / 'preferences.jsonl'}", *keys)
    before, after = load_file(run / ADAPTER_FILE), load_file(again / ADAPTER_FILE)
    assert all(before[name].equal(after[name]) for name in before)


@pytest.mark.parametrize(
    ("script", "key", "words"),
    [
        ("critique_grpo", "run.patience=2", "run.patience is not for this script"),
        ("critique_grpo", "data.votes=shares", "data.votes is not for this script"),
        ("critique_dpo", "optim.token_budget=64", "optim.token_budget is not for this script"),
        ("critique_grpo", "critiques.drawn=1", "critiques.drawn"),
        ("critique_dpo", "dpo.least_margin=50", "no two critiques differ so much"),
    ],
)
def test_what_is_refused(
    script: str, key: str, words: str, small: str, tmp_path: Path, refusal: Any
) -> None:
    path = write_recipe(tmp_path, small, **SECTIONS[script])
    assert words in refusal(SCRIPTS[script], ["--config", str(path), key])


def test_rows_of_one_id_are_not_drawn_of(
    small: str, tmp_path: Path, refusal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files that number their rows: critiques of one row would be trained on with another."""
    monkeypatch.setattr("train.run.load_backbone", pytest.fail)
    path = write_recipe(tmp_path, small)
    more = [labelled_pair(i, question=f"Which lake {i}?") for i in (9, 2)]
    files = [str(tmp_path / "train.jsonl"), write_split(tmp_path / "more.jsonl", more)]
    error = refusal(critique_dpo, ["--config", str(path), f"data.train={json.dumps(files)}"])
    assert "field 'id': two rows of split 'train' have the id '2'" in error


def test_their_steps_are_not_planned() -> None:
    with pytest.raises(CustosError, match="TRL"):
        plan_run("embedded/pair_grpo", [], gpus=1, memory=80, rate=None, tokens_per_row=600)


def test_one_process(monkeypatch: pytest.MonkeyPatch, refusal: Any) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    for script in SCRIPTS.values():
        assert "--processes 1" in refusal(script, [])


def test_rows_that_grpo_cannot_take(
    small: str, tmp_path: Path, refusal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("train.run.load_backbone", pytest.fail)
    picture = save_picture(tmp_path / "a.png", 60, 50)
    for fields, words in (
        ({"images": (picture,)}, "GRPO takes no pictures"),
        ({"task": "truthful-pure-label"}, "'truthful-pure-label' writes no critiques"),
    ):
        path = write_recipe(tmp_path, small)
        rows = [labelled_pair(i, question=f"Which bad {i}?", **fields) for i in range(8)]
        write_split(tmp_path / "train.jsonl", rows)
        assert words in refusal(critique_grpo, ["--config", str(path)])
