"""Starting from an earlier adapter: its shape is kept and recorded, dropout is the recipe's."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from peft.tuners.lora import LoraLayer

from judging.errors import CustosError, Missing
from judging.files.records import write_json
from judging.judge import Judge
from judging.judge.card import CARD_FILE, SHIPPED, JudgeCard
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from tests.train.made_up import example, recipe, write_recipe
from train import hieval_stage1
from train.methods.focal import FocalRecipe
from train.setup.recipe import AdapterSection
from train.setup.starting_adapter import with_adapter, with_shape_of_init


@pytest.fixture(scope="module")
def init(small: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter of rank 2, alpha 6 on two projections, trained with dropout."""
    folder = tmp_path_factory.mktemp("adapter") / "init"
    model = load_backbone(small, dtype="float32").model
    add_adapter(model, r=2, alpha=6, dropout=0.3, modules=("q", "down")).save_pretrained(folder)
    return folder


def _from(folder: Path, init: Path, **adapter: Any) -> FocalRecipe:
    section = AdapterSection.model_validate({"init": init, **adapter})
    return recipe(folder).model_copy(update={"adapter": section})


def test_its_shape_is_recorded(tmp_path: Path, init: Path) -> None:
    adapter = with_shape_of_init(_from(tmp_path, init, alpha=6, modules=("down", "q"))).adapter
    assert (adapter.r, adapter.alpha, adapter.modules) == (2, 6, ("q", "down"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"r": 4}, "field 'adapter.r': 4: the adapter of adapter.init=.*init has 2"),
        ({"alpha": 64}, "field 'adapter.alpha': 64: .* has 6"),
        ({"modules": ("q",)}, r"field 'adapter.modules': \('q',\): .* has \('q', 'down'\)"),
    ],
)
def test_another_shape_is_refused(
    tmp_path: Path, init: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(CustosError, match=message):
        with_shape_of_init(_from(tmp_path, init, **settings))


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_dropout_is_the_recipes(small: str, tmp_path: Path, init: Path, dropout: float) -> None:
    backbone = load_backbone(small, dtype="float32")
    started = with_shape_of_init(_from(tmp_path, init, dropout=dropout))
    adapted = with_adapter(backbone, started).model
    layers = [module for module in adapted.modules() if isinstance(module, LoraLayer)]
    rates = {getattr(layer.lora_dropout["default"], "p", 0.0) for layer in layers}
    assert rates == {dropout}
    ids = torch.arange(5, 25)[None]
    for name, parameter in adapted.train().named_parameters():
        if "lora_B" in name:  # zero in a fresh adapter, which would hide dropout
            parameter.data.fill_(0.1)
    passes = [adapted(input_ids=ids).logits for _ in range(2)]
    assert torch.equal(*passes) == (dropout == 0.0)
    adapted.save_pretrained(tmp_path / "saved")
    saved = json.loads((tmp_path / "saved" / "adapter_config.json").read_text(encoding="utf-8"))
    assert saved["lora_dropout"] == dropout


def test_a_shipped_judge_is_found_by_name_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    started = _from(tmp_path, Path("embedded-qs"))
    assert with_shape_of_init(started).adapter.r == 16
    [name] = [name for name in started.files if name.endswith("adapter_model.safetensors")]
    assert name == "embedded-qs/adapter_model.safetensors"
    assert started.files[name] == SHIPPED / name
    (tmp_path / "embedded-qs").mkdir()
    assert started.adapter.init_folder == Path("embedded-qs")


def test_a_missing_folder_is_named_before_the_backbone_loads(tmp_path: Path, refusal: Any) -> None:
    with pytest.raises(Missing):
        with_shape_of_init(_from(tmp_path, tmp_path / "none"))
    path = write_recipe(tmp_path, "/no/such/backbone")
    error = refusal(hieval_stage1, ["--config", str(path), f"adapter.init={tmp_path / 'none'}"])
    assert error.startswith(f"error: adapter.init={tmp_path / 'none'}: no such run folder")


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("adapter_model.safetensors", b"cut", "adapter_model.safetensors: damaged: "),
        ("adapter_config.json", b"{", "adapter_config.json: not of a LoRA adapter: "),
        ("adapter_config.json", b"[]", "adapter_config.json: not of a LoRA adapter: "),
        ("adapter_config.json", b'{"peft_type": "IA3"}', "not of a LoRA adapter: 'r'"),
    ],
)
def test_a_damaged_adapter_is_named(
    tmp_path: Path, init: Path, file: str, content: bytes, message: str
) -> None:
    damaged = shutil.copytree(init, tmp_path / "damaged")
    (damaged / file).write_bytes(content)
    with pytest.raises(CustosError, match=message):
        with_shape_of_init(_from(tmp_path, damaged))


def test_a_run_records_what_it_started_from(small: str, tmp_path: Path, init: Path) -> None:
    path = write_recipe(tmp_path, small, data__cal=None, data__test=None, optim__max_steps=1)
    hieval_stage1.main(["--config", str(path), f"adapter={{init: {init}, dropout: 0.0}}"])
    resolved = yaml.safe_load((tmp_path / "run" / "recipe.yaml").read_text(encoding="utf-8"))
    shape = {"r": 2, "alpha": 6, "modules": ["q", "down"]}
    assert shape.items() <= resolved["adapter"].items()
    assert str(init / "adapter_model.safetensors") in resolved["provenance"]["sha256"]


def test_a_judge_keeps_the_rubrics_of_the_one_that_it_goes_on_from(
    small: str, tmp_path: Path, init: Path
) -> None:
    """A rubric without rows is still graded, and its confidence is called uncalibrated."""
    start = shutil.copytree(init, tmp_path / "start")
    rubrics = {"hieval-qs": ("tolerance/all", "plain/any"), "hieval-ea": ("plain/all",)}
    card = JudgeCard.for_rubrics(load_backbone(small), rubrics, 1024, listed_options=True)
    write_json(start / CARD_FILE, card.model_dump(mode="json"))
    path = write_recipe(tmp_path, small, data__test=None, optim__max_steps=1)
    hieval_stage1.main(["--config", str(path), f"adapter={{init: {start}, dropout: 0.0}}"])
    judge = Judge.load(str(tmp_path / "run"), device="cpu")
    assert judge.card is not None
    assert judge.card.tasks == {"hieval-qs": ("tolerance/all", "plain/any")}, "tasks need rows"
    assert judge.card.listed_options
    of_another = card.model_copy(update={"backbone_version": "another"})
    assert judge.card.going_on_from(of_another) == judge.card
    known, kept = (
        example(900, variant=variant, reference_mode=mode).request()
        for variant, mode in (("plain", "any"), ("tolerance", "all"))
    )
    calibrated, uncalibrated = judge.grade([known, kept])
    assert calibrated.label and not calibrated.message
    assert uncalibrated.label and "not calibrated" in (uncalibrated.message or "")
    card_text = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert "no training row here has: hieval-qs/tolerance/all." in card_text
