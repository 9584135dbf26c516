"""``custos plan`` as users run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from judging.models.backbones import load_backbone
from tests.tiny import save_picture
from tests.train.made_up import encoded, example, examples, write_recipe
from train.launch.run_plan import published_config
from train.loop.batches import StepPlan
from train.setup.recipe import OptimSection


def _plan(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["plan", *arguments])


def _json(*arguments: str) -> dict[str, Any]:
    result = _plan(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def test_a_plan_of_files_counts_rows_steps_and_time(small: str, tmp_path: Path) -> None:
    path = write_recipe(tmp_path, small)
    plan = _json(str(path), "--gpus", "0", "--rate", "100", "optim.epochs=2")
    assert plan["rows"] == 24
    assert plan["counted_by"] == "tokenizer"
    assert plan["steps"] == 6
    assert plan["seconds"] == pytest.approx(plan["tokens_per_step"] * 6 / 100)
    assert plan["fits"] and plan["advice"] is None
    assert plan["total_bytes"] == sum(plan["bytes"].values())
    assert 0 < plan["trained"] < plan["parameters"]


def test_checkpointing_leaves_as_many_rows_in_a_forward_pass(small: str, tmp_path: Path) -> None:
    """Rows share their instruction with it, too, so that it does not count for each of them."""
    recipe = write_recipe(tmp_path, small, optim__token_budget=500, optim__batch_size=24)
    keys = ("run.gradient_checkpointing=false", "run.gradient_checkpointing=true")
    planned = [_json(str(recipe), "--gpus", "0", key)["micro_batch"] for key in keys]
    rows = encoded(load_backbone(small, dtype="float32"), examples(24))
    optim = OptimSection(lr=1.0, token_budget=500, batch_size=24)
    passes = StepPlan(rows, optim, 0).micro_batches(0)
    assert planned[0] == planned[1]
    assert planned[0] == pytest.approx(max(map(len, passes)), abs=1)


def test_a_gpu_of_80_gb_has_less_for_a_run(small: str, tmp_path: Path) -> None:
    """``nvidia-smi`` shows 81,559 MiB on an H100, and the driver keeps some of them."""
    plan = _json(str(write_recipe(tmp_path, small)), "--gpus", "1")
    assert 76 <= plan["memory"] < 81_559 / 1024 - 1


def test_advice_for_the_least_budget(small: str, tmp_path: Path) -> None:
    """One row is too much already, and no smaller budget gives fewer."""
    command = (str(write_recipe(tmp_path, small)), "--gpus", "1", "optim.token_budget=1")
    whole = _json(*command)
    of_row = sum(whole["bytes"][part] for part in ("activations", "logits", "workspace"))
    plan = _json(*command, "--memory", str((whole["total_bytes"] - 0.99 * of_row) / 2**30))
    assert not plan["fits"]
    assert "a single row needs more than" in plan["advice"]


def test_advice_names_a_key_with_which_the_run_fits(tmp_path: Path, small: str) -> None:
    path = str(write_recipe(tmp_path, small))
    made_up = ("--tokens-per-row", "4000", "--rows", "100", "--gpus", "1")
    keys = ("optim.batch_size=64", "optim.token_budget=300000")
    off = "run.gradient_checkpointing=false"
    plan = _json(path, *made_up, *keys, off, "--memory", "2")
    assert not plan["fits"]
    key = plan["advice"].removeprefix("set ").partition(":")[0]
    assert key.startswith("optim.token_budget=")
    assert _json(path, *made_up, keys[0], off, key, "--memory", "2")["fits"]


@pytest.mark.parametrize(("gpus", "advised"), [("1", None), ("2", None), ("4", "32")])
def test_few_rows_of_a_step_on_a_gpu_are_noted(
    small: str, tmp_path: Path, gpus: str, advised: str | None
) -> None:
    """A step of 16 rows gives two GPUs eight each, and four GPUs four."""
    command = (str(write_recipe(tmp_path, small, optim__batch_size=16)), "--gpus", gpus)
    lines = _plan(*command).stdout.splitlines()
    words = [line.split() for line in lines if line.startswith("rows a GPU")]
    assert len(words) == (gpus != "1")
    for _, _, _, share, *rest in words:
        assert int(share) == 16 // int(gpus)
        keys = [word.partition("=")[2] for word in rest if word.startswith("optim.batch_size=")]
        assert keys[1:] == ([advised] if advised else [])


def test_a_plan_without_data_says_how_to_go_on() -> None:
    result = _plan("hieval_stage1")
    assert result.exit_code == 2
    assert "--tokens-per-row" in result.output


def test_a_folder_with_a_config_alone_is_enough(tmp_path: Path, small: str) -> None:
    (tmp_path / "bare").mkdir()
    config = (Path(small) / "config.json").read_text()
    (tmp_path / "bare" / "config.json").write_text(config)
    path = write_recipe(tmp_path, str(tmp_path / "bare"))
    plan = _json(str(path))
    assert plan["counted_by"] == "4 characters a token"


MADE_UP_PICTURES = ("--tokens-per-row", "600", "--rows", "9", "--pixels-per-row", "12000000")


def test_a_plan_without_a_checkpoint_scales_pictures_as_the_recipe_says(tmp_path: Path) -> None:
    """Plan the configuration of Qwen3-VL-4B, cut to two layers, which takes no time."""
    config = published_config("Qwen/Qwen3-VL-4B-Instruct")
    config.text_config.num_hidden_layers = 2
    config.save_pretrained(tmp_path)
    made_up = (*MADE_UP_PICTURES, f"backbone={tmp_path}")
    default = _json("hieval_stage1", *made_up)
    small = _json("hieval_stage1", *made_up, "run.max_pixels=262144")
    for plan, most in ((default, 1024), (small, 256)):  # a token stands for 32 x 32 pixels
        assert 0.9 * most <= plan["longest_row_tokens"] - 600 <= most + 4
    assert small["bytes"]["pictures"] < default["bytes"]["pictures"]


@pytest.mark.slow
def test_a_larger_limit_lets_qwen2_5_see_more() -> None:
    large = _json("truthful_judge", *MADE_UP_PICTURES, "run.max_pixels=4000000")
    most = 4_000_000 / (28 * 28)
    assert 0.9 * most <= large["longest_row_tokens"] - 600 <= most + 4


def test_a_picture_that_is_too_narrow_is_one_line(small: str, tmp_path: Path) -> None:
    path = write_recipe(tmp_path, small)
    row = {
        **example(0).model_dump(mode="json"),
        "task": "hieval-ea",
        "label": "Correct",
        "images": [save_picture(tmp_path / "a.png", 1, 900)],
    }
    (tmp_path / "narrow.jsonl").write_text(json.dumps(row), encoding="utf-8")
    result = _plan(str(path), f"data.train={tmp_path / 'narrow.jsonl'}")
    assert result.exit_code == 2
    assert "row '0'" in result.output and "images" in result.output


@pytest.mark.slow  # a minute
def test_gpus_that_share_a_model_need_less_than_copies() -> None:
    made_up = ("hieval_stage1", "--tokens-per-row", "600", "--rows", "9", "--gpus", "4")
    copies, shared = (_json(*made_up, *more)["bytes"] for more in ((), ("--shared",)))
    for part in ("adapter", "gradients", "optimizer"):
        assert shared[part] == pytest.approx(copies[part] / 4, rel=0.01), part
    # The vision tower stays whole: 8.27 GiB of weights, of which about .8 are the tower's.
    assert copies["weights"] / 4 < shared["weights"] < copies["weights"] / 3
    assert copies["buckets"] > shared["buckets"] == 0
    assert shared["gathered"] > copies["gathered"] == 0
    assert sum(shared.values()) < sum(copies.values())


def test_what_cannot_share_a_model_is_refused() -> None:
    made_up = ("hieval_stage1", "--tokens-per-row", "600", "--shared")
    for more, message in (
        ((), "--gpus N"),
        (("--gpus", "2", "adapter.merger=true"), "one process trains a merger"),
    ):
        refused = _plan(*made_up, *more)
        assert refused.exit_code == 2
        assert message in refused.output


def test_a_task_is_planned_with_the_recipe_that_it_is_trained_with() -> None:
    made_up = ("--tokens-per-row", "60", "--rows", "500", "--gpus", "0")
    plan = _plan("hieval-qs", *made_up, "--rate", "100000", "optim.epochs=1")
    assert plan.exit_code == 0, plan.output
    [time] = [line.split() for line in plan.stdout.splitlines() if line.startswith("time")]
    assert time[2:] == ["s"] and 0 < int(time[1]) < 120
