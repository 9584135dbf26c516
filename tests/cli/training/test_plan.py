"""``custos plan``, ``custos recipe`` and ``custos sweep`` as users run them."""

import json
from pathlib import Path
from typing import Any

import pytest

from data_prep.tables.mapping import TableMapping
from judging.errors import CustosError
from judging.models.backbones import load_backbone
from tests.cli.made_up import custos, succeed
from tests.train.made_up import encoded, examples, write_recipe
from train.launch.front import TrainingRun
from train.launch.run_plan import plan_run, published_config
from train.launch.sweep import Sweep
from train.loop.batches import StepPlan
from train.methods import methods
from train.methods.focal import FocalRecipe
from train.setup.recipe import RECIPES, OptimSection, parse_recipe, recipe_names


def _plan(*arguments: str) -> Any:
    return custos("plan", *arguments)


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


def test_no_weights_are_fetched_for_a_plan(
    small: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("judging.models.gguf_files.fetch", lambda *_: pytest.fail("fetched"))
    path = str(write_recipe(tmp_path, small))
    plan = plan_run(path, ["backbone=qwen2.5-coder-1.5b"], gpus=0, memory=64, rate=None)
    assert plan.counted == "4 characters a token"
    assert plan.config.num_hidden_layers == 28


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


def test_a_table_for_a_task_is_planned_as_it_is_trained_on(small: str, tmp_path: Path) -> None:
    """Its rows name no task, and the recipe's files to calibrate and test with are not there."""
    table = tmp_path / "rows.csv"
    colours = ("red", "green", "blue", "black", "white")
    rows = [f"Which {colour}?,{colour},brown,A,A is." for colour in colours]
    heading = "question,response_a,response_b,label,critique"
    table.write_text("\n".join([heading, *rows]), encoding="utf-8")
    data = f"data.train={table}", "data.val=null"
    plan = _json("truthful-pair", "--gpus", "0", *data, f"backbone={small}", "adapter.init=null")
    assert plan["rows"] == 4, "and one to validate with"


def test_the_list_says_what_each_recipe_is_for() -> None:
    result = succeed("recipe", "list")
    heading, *lines = result.stdout.splitlines()
    assert heading.split()[0] == "recipe"
    by_name = {line.split()[0]: line for line in lines if line}
    assert set(recipe_names()) <= set(by_name)
    assert by_name["embedded/demo"].split()[1] == "focal"
    assert "make demo" in by_name["embedded/demo"]
    assert "custos train RECIPE --train TABLE" in lines[-1]


def test_a_recipe_is_shown_as_it_is() -> None:
    result = succeed("recipe", "show", "embedded/demo")
    assert result.stdout == (RECIPES / "embedded" / "demo.yaml").read_text(encoding="utf-8")


def test_a_recipe_is_copied_and_never_over_another_file(tmp_path: Path) -> None:
    target = tmp_path / "my.yaml"
    arguments = ["recipe", "copy", "hieval_stage1", str(target)]
    result = succeed(*arguments)
    assert f"custos train {target} --train TABLE" in result.stdout
    assert target.read_bytes() == (RECIPES / "hieval_stage1.yaml").read_bytes()
    target.write_text("mine", encoding="utf-8")
    result = custos(*arguments)
    assert (result.exit_code, target.read_text(encoding="utf-8")) == (2, "mine")
    assert f"error: {target}: this file exists already; name another" in result.stderr


def test_every_key_of_a_recipe_is_explained_on_eighty_columns() -> None:
    result = succeed("recipe", "keys")
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "`" not in result.stdout
    assert lines.count("optim:") == 1
    assert any(line.startswith("  optim.lr: number, > 0; required") for line in lines)
    parsed = json.loads(custos("recipe", "keys", "--json").stdout)
    assert all(key["meaning"] and key["value"] and key["default"] for key in parsed)
    assert {"loss.gamma", "loss.margin", "replay.rho"} <= {key["name"] for key in parsed}


def test_keys_of_one_recipe_and_single_keys() -> None:
    result = custos("recipe", "keys", "embedded/mine", "loss", "--json")
    names = {key["name"] for key in json.loads(result.stdout)}
    assert "loss.gamma" in names
    assert "loss.margin" not in names
    result = custos("recipe", "keys", "optim.lr")
    assert "Highest learning rate" in result.stdout
    assert "optim.epochs" not in result.stdout
    result = custos("recipe", "keys", "optim.lrr")
    assert result.exit_code != 0
    assert "optim.lrr: no such key; the nearest is 'optim.lr'" in result.stderr


def test_the_key_method_names_every_method() -> None:
    result = custos("recipe", "keys", "method", "--json")
    [key] = json.loads(result.stdout)
    assert all(f"{name}: {method.__doc__}" in key["meaning"] for name, method in methods().items())


RECIPE = "embedded/demo"


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Stand in for training: a run leaves a report whose accuracy is .8 and a hundredth a seed."""
    commands: list[list[str]] = []

    def call(command: list[str]) -> int:
        commands.append(command)
        seed = int(command[command.index("--seed") + 1])
        if seed == 13:
            return 1
        report = {"metrics": {"accuracy": {"value": 0.8 + seed / 100}}}
        _write(Path(command[command.index("--out") + 1]), report)
        return 0

    monkeypatch.setattr("subprocess.call", call)
    monkeypatch.chdir(tmp_path)
    return commands


def _write(folder: Path, report: dict[str, Any], test_file: str = "d") -> None:
    """Write what a run leaves: its report, and the hashes of the files that it read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    provenance = {"sha256": {"train.jsonl": "a", "test.jsonl": test_file}}
    (folder / "recipe.yaml").write_text(json.dumps({"provenance": provenance}), encoding="utf-8")


def _sweep(*arguments: str) -> Any:
    return custos("sweep", RECIPE, *arguments, "--out", "runs/s")


def test_seeds_are_trained_once_and_summed_up(trained: list[list[str]]) -> None:
    done = _sweep("optim.epochs=2", "--seeds", "3")
    assert done.exit_code == 0, done.output
    assert [c[c.index("--seed") + 1] for c in trained] == ["0", "1", "2"]
    assert all("optim.epochs=2" in command and RECIPE in command for command in trained)
    result = json.loads(Path("runs/s/sweep.json").read_text(encoding="utf-8"))
    assert result["seeds"] == [0, 1, 2]
    assert result["metrics"]["accuracy"]["mean"] == pytest.approx(0.81)
    assert result["metrics"]["accuracy"]["std"] == pytest.approx(0.01)
    assert "0.8100" in done.output

    assert _sweep("optim.epochs=2", "--seeds", "5").exit_code == 0  # two more
    assert [c[c.index("--seed") + 1] for c in trained[3:]] == ["3", "4"]
    result = json.loads(Path("runs/s/sweep.json").read_text(encoding="utf-8"))
    assert len(result["metrics"]["accuracy"]["values"]) == 5


def test_seed_0_is_a_seed() -> None:
    """It would else be the recipe's own, and two runs of a sweep could be the same."""
    out = Path("runs/😀")
    options: dict[str, Any] = {"init": None, "out": out, "command": ""}
    for seed in (0, 3):
        keys = ["run.seed=7", "run.output=y"]  # an option stands, as in a sweep and a dry run
        run = TrainingRun.plan(RECIPE, keys, {}, TableMapping(), seed=seed, **options)
        assert f'run.seed="{seed}"' in run.overrides
        parsed = parse_recipe(FocalRecipe, run.recipe, run.overrides).run
        assert (parsed.seed, parsed.output, run.output) == (seed, out, out)


def test_another_recipe_does_not_go_on_in_the_same_folder(trained: list[list[str]]) -> None:
    assert _sweep("--seeds", "1").exit_code == 0
    refused = _sweep("optim.lr=1e-5", "--seeds", "2")
    assert refused.exit_code != 0
    assert "another recipe" in str(refused.output) + str(refused.exception)
    assert len(trained) == 1


@pytest.mark.parametrize("name", ["sweep.json", "seed-0/report.json"])
@pytest.mark.parametrize("content", ["{", "[]", "\xff"])
def test_a_damaged_file_is_named(trained: list[list[str]], name: str, content: str) -> None:
    assert _sweep("--seeds", "1").exit_code == 0
    (Path("runs/s") / name).write_text(content, encoding="latin-1")
    result = _sweep("--seeds", "1")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith(f"error: runs/s/{name}: ")


def test_a_run_that_fails_stops_the_sweep(trained: list[list[str]]) -> None:
    sweep = Sweep(RECIPE, (), (13,), Path("runs/s"))
    sweep.open()
    with pytest.raises(Exception, match="seed 13: training failed"):
        sweep.train(13)
    assert sweep.open_seeds() == [13]


def test_runs_on_different_files_are_not_averaged(trained: list[list[str]]) -> None:
    assert _sweep("--seeds", "2").exit_code == 0
    _write(Path("runs/s/seed-1"), {"metrics": {"accuracy": {"value": 1}}}, test_file="e")
    sweep = Sweep(RECIPE, (), (0, 1), Path("runs/s"))
    with pytest.raises(CustosError, match="test.jsonl was another file when seed 1 was trained"):
        sweep.result()
