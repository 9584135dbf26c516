"""Gradient checkpointing by what memory decides, and planned memory against that of a real step."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from accelerate import Accelerator

from judging.models.backbones import Backbone, empty_model, load_backbone
from judging.models.gguf_files import NAMED
from judging.scoring.label_tree import LabelTree
from judging.scoring.tree_batch import TreeModel
from judging.types import LabelledExample
from tests.tiny import save_picture
from tests.train.made_up import (
    analysed,
    encoded,
    example,
    examples,
    recipe,
    steps_of,
    trainer,
    write_recipe,
)
from tests.train.plan.measured import (
    ROWS,
    long_rows,
    peak_of_step,
    planned_and_resident,
    planned_step,
)
from train.launch.run_plan import PUBLISHED, plan_run, published_config
from train.loop.checkpoint import newest_checkpoint, run_identity
from train.methods.focal import FocalRecipe
from train.plan import planner
from train.plan.planner import (
    GIB,
    SHARE_TO_FILL,
    Hardware,
    RunPlan,
    decide_checkpointing,
    largest_rows,
    longest,
    machine_memory,
    row_sizes,
)
from train.plan.step_memory import RowSize, step_memory
from train.rows.rows import Rows
from train.setup.recipe import Recipe
from train.setup.run_log import RUN_LOG

LONG = {"optim__token_budget": 4000, "optim__batch_size": 32}


def _decide(settings: Recipe, rows: Rows, memory: float | None = None) -> bool:
    """Decide for a GPU of so many bytes, or for this CPU."""
    with pytest.MonkeyPatch.context() as patch:
        properties = SimpleNamespace(total_memory=memory)
        patch.setattr(torch.cuda, "get_device_properties", lambda device=None: properties)
        device = torch.device("cpu" if memory is None else "cuda")
        accelerator = SimpleNamespace(device=device, num_processes=1, is_main_process=True)
        config = rows.encoder.backbone.model.config
        before = config.to_dict()
        lines: list[str] = []
        patch.setattr(RUN_LOG, "write", lines.append)
        decided = decide_checkpointing(
            settings, rows, config, TreeModel, cast(Accelerator, accelerator)
        )
        assert config.to_dict() == before, "the model that is trained reads it"
    assert (not lines) == (settings.run.gradient_checkpointing != "auto")
    assert run_identity(decided, "v", {}) == run_identity(settings, "v", {})
    assert isinstance(decided.run.gradient_checkpointing, bool)
    return decided.run.gradient_checkpointing


@pytest.fixture
def rows(backbone: Backbone) -> Rows:
    return encoded(backbone, examples(24))


def test_a_gpu_that_a_step_would_fill_gets_it(small: str, rows: Rows, tmp_path: Path) -> None:
    """The boundary is where ``custos plan`` has it, with the same rows."""
    path = write_recipe(tmp_path, small, **LONG)
    off = plan_run(str(path), ["run.gradient_checkpointing=false"], gpus=1, memory=80, rate=None)
    fitting = off.memory.total / SHARE_TO_FILL
    settings = recipe(tmp_path / "run", small, **LONG)
    for memory, expected in ((1.001 * fitting, False), (0.999 * fitting, True)):
        planned = plan_run(str(path), [], gpus=1, memory=memory / GIB, rate=None)
        assert planned.checkpointing is expected
        assert planned.reason
        assert _decide(settings, rows, memory) is expected
    stated = recipe(tmp_path / "run", small, run__gradient_checkpointing=False)
    assert not _decide(stated, rows, 0.1 * fitting)


def test_a_cpu_needs_it_for_a_large_backbone_alone(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = recipe(tmp_path / "run")
    monkeypatch.setattr(planner, "machine_memory", lambda: 0.01)
    assert not _decide(settings, rows)
    monkeypatch.setattr(planner, "SMALL", 0)
    assert _decide(settings, rows)
    monkeypatch.setattr(planner, "machine_memory", lambda: 8.0)
    assert not _decide(settings, rows)


def test_a_resumed_run_keeps_it(
    small: str, rows: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, **keys: Any) -> FocalRecipe:
        return recipe(tmp_path / name, small, **keys)

    for name, keys, expected in (
        ("on", {"run__gradient_checkpointing": True}, True),
        ("off", {}, False),
    ):
        first = trainer(run(name, **keys), small, examples(8))
        first.fit()
        newest = newest_checkpoint(tmp_path / name)
        assert newest
        state = json.loads((newest / "state.json").read_text(encoding="utf-8"))
        assert state["settings"]["run.gradient_checkpointing"] is expected
        again = trainer(run(name), small, examples(8))
        assert again.recipe.run.gradient_checkpointing is expected
        again.fit()
        assert "changed since" not in capsys.readouterr().out
        assert _decide(run(name), rows, 80 * GIB) is expected, "a larger GPU"
        assert _decide(run(name), rows, 0.01 * GIB), "a smaller GPU cannot do without"


@pytest.mark.parametrize("kind", ["focal", "pictures"])
def test_the_largest_rows_stand_for_all(kind: str, backbone: Backbone, tmp_path: Path) -> None:
    data = examples(20)
    if kind == "pictures":
        wide = example(6, task="hieval-ea", images=(save_picture(tmp_path / "b.png", 200, 90),))
        data = [*analysed(tmp_path, 12), wide]
    rows, config, settings = encoded(backbone, data), backbone.model.config, recipe(tmp_path)
    every = longest(row_sizes(data, rows.supervision, settings, config))
    largest = largest_rows(rows, settings, config)
    assert len(largest) < len(data)
    chosen = longest(largest)
    for name in ("instruction", "prompts", "supervised", "patches", "length"):
        assert getattr(chosen, name) == getattr(every, name), name


TOTALS = {
    **{each.base_model: each.parameters for each in NAMED.values()},
    "Qwen/Qwen2.5-VL-3B-Instruct": 3_754_622_976,
    "Qwen/Qwen2.5-VL-7B-Instruct": 8_292_166_656,
    "Qwen/Qwen2.5-VL-32B-Instruct": 33_452_718_336,
    "Qwen/Qwen2.5-VL-72B-Instruct": 73_410_777_344,
    "Qwen/Qwen3-VL-2B-Instruct": 2_127_532_032,
    "Qwen/Qwen3-VL-4B-Instruct": 4_437_815_808,
    "Qwen/Qwen3-VL-8B-Instruct": 8_767_123_696,
    "Qwen/Qwen3-VL-32B-Instruct": 33_357_390_064,
    "Qwen/Qwen3-VL-30B-A3B-Instruct": 31_070_754_032,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_published_checkpoint_has_its_parameters(name: str) -> None:
    assert empty_model(published_config(name)).num_parameters() == TOTALS[name]


def test_a_container_has_the_memory_that_it_may_use(tmp_path: Path) -> None:
    whole = machine_memory(tmp_path / "none")
    assert whole > 0
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text(f"{2**62}\n")  # no limit
    (tmp_path / "memory.max").write_text("max\n")
    assert machine_memory(tmp_path) == whole
    (tmp_path / "memory.max").write_text(f"{GIB // 2}\n")
    assert machine_memory(tmp_path) == 0.5


def _planned_and_measured(
    settings: FocalRecipe, folder: str, rows: list[LabelledExample], tmp_path: Path
) -> tuple[int, int]:
    learner = trainer(settings, folder, rows, rows[:2])
    planned = planned_step(settings, learner.rows.train.encoder, rows)
    return planned.total, peak_of_step(learner, [list(range(ROWS))], tmp_path)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_tiny_step_takes_what_was_planned(
    tiny_folder: str, tmp_path: Path, checkpointing: bool
) -> None:
    settings = recipe(tmp_path / "run", run__gradient_checkpointing=checkpointing)
    planned, measured = _planned_and_measured(settings, tiny_folder, long_rows(8), tmp_path)
    assert planned == pytest.approx(measured, rel=0.15)


def test_two_rows_that_fit_where_the_longest_is_alone_are_planned(
    tiny_folder: str, tmp_path: Path
) -> None:
    shorter, longest_row = long_rows(4, 150), long_rows(5, 210)[4]
    rows = [*shorter, longest_row]
    widths = encoded(load_backbone(tiny_folder, dtype="float32"), rows).widths()
    budget = 2 * int(max(widths[:4]))
    assert widths[4] < budget < 1.6 * widths[4]
    settings = recipe(tmp_path / "run", optim__token_budget=budget, optim__epochs=1)
    learner = trainer(settings, tiny_folder, rows, rows[:2])
    config = learner.rows.train.encoder.backbone.model.config
    sizes = largest_rows(learner.rows.train, settings, config)
    plan = RunPlan(settings, False, config, sizes, Hardware(0, 1.0))
    passes = {len(rows): rows for step in steps_of(learner.plan) for rows in step}
    assert passes.keys() == {1, 2}
    measured = max(peak_of_step(learner, [each], tmp_path) for each in passes.values())
    assert plan.without_checkpointing.tensors == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize("tokens", [400, 1000])
def test_a_budget_that_fits_no_further_row_never_needs_less(small: str, tokens: int) -> None:
    """One long row may keep more than two halves: attention of a CPU pairs a row's tokens."""
    keys = [f"backbone={small}", "optim.batch_size=8", "run.gradient_checkpointing=false"]
    least, more = (
        plan_run(
            "embedded/mine",
            [*keys, f"optim.token_budget={budget}", "adapter.init=null"],
            gpus=0,
            memory=8,
            rate=None,
            tokens_per_row=tokens,
            num_rows=100,
        )
        for budget in (tokens - 1, tokens + 24)
    )
    assert least.micro_batch == more.micro_batch == 1
    assert more.memory.total >= least.memory.total


def test_a_budget_for_two_smaller_pictures_is_planned(small: str) -> None:
    """A trained merger takes squares of patches."""
    plan = plan_run(
        "hieval_stage1",
        [f"backbone={small}", "adapter.merger=true", "optim.token_budget=300"],
        gpus=1,
        memory=80,
        rate=None,
        tokens_per_row=200,
        pixels_per_row=640_000,
        num_rows=100,
    )
    assert plan.micro_batch == 1 and plan.fits
    assert plan.memory.pictures > 0


def test_dora_and_a_trained_merger_take_what_was_planned(small: str, tmp_path: Path) -> None:
    rows = long_rows(8, images=(save_picture(tmp_path / "a.png", 160, 160),))
    settings = recipe(tmp_path / "run", adapter__dora=True, adapter__merger=True)
    planned, measured = _planned_and_measured(settings, small, rows, tmp_path)
    assert planned == pytest.approx(measured, rel=0.15)


def test_weights_of_4_bits_and_moments_of_8_take_less() -> None:
    """Count by hand: four text layers of Qwen2.5-VL-3B, of seven projections each."""
    config = published_config("Qwen/Qwen2.5-VL-3B-Instruct")
    config.text_config.num_hidden_layers = layers = 4
    hidden, inner, heads = 2048, 11008, 256
    layer = 2 * hidden * hidden + 2 * hidden * heads + 3 * hidden * inner
    size = RowSize("rows", 0, 16, 1, LabelTree.build(["a"], [[1, 2]]), 2)
    smaller = {"run__quantization": "nf4", "optim__optimizer": "paged_adamw_8bit"}
    before, after = (
        step_memory(config, recipe(Path("run"), "unused", **keys), size, bf16=True, gpu=True)
        for keys in ({}, smaller)
    )
    saved = layers * layer * (2 - (4 + 8 / 64 + 32 / (64 * 256)) / 8)
    assert before.weights - after.weights == pytest.approx(saved, rel=1e-6)
    # A quarter, scales of blocks, and tensors too small for 8 bits.
    assert 1 < after.optimizer / (before.optimizer / 4) < 1.06
    assert after.trained == before.trained and after.parameters == before.parameters


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bf16", "fp32"])
def test_a_step_of_the_embedded_backbone_takes_what_was_planned(
    tmp_path: Path, precision: str
) -> None:
    settings = recipe(tmp_path / "run", run__precision=precision, adapter__dropout=0.05)
    planned, measured = _planned_and_measured(settings, "embedded", long_rows(8, 60), tmp_path)
    assert planned == pytest.approx(measured, rel=0.15)


@pytest.mark.slow
def test_a_process_of_the_embedded_backbone_takes_what_was_planned(tmp_path: Path) -> None:
    planned, resident = planned_and_resident("embedded", 150, tmp_path)
    assert planned == pytest.approx(resident, rel=0.15)
