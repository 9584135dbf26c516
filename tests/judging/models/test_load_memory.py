"""The memory that loading takes, on a checkpoint of half a gigabyte in bfloat16."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from judging.card import CARD_FILE, JudgeCard
from judging.files.records import write_json
from judging.models.adapters import add_adapter, save_adapter
from judging.models.backbones import load_backbone
from judging.models.device_dtype import computes_bfloat16
from tests.conftest import HubFolders
from train.dry_run.random_checkpoint import random_checkpoint

WIDE = {
    **{"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 16, "head_dim": 64},
    **{"num_attention_heads": 16, "num_key_value_heads": 8},
}
MEASURE = """
import sys
from pathlib import Path
import peft
from judging import Judge
from judging.models.backbones import load_backbone
def status(key):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
Judge.load(sys.argv[1])  # imports what loading needs
before = status("VmRSS")
Path("/proc/self/clear_refs").write_text("5")
model = Judge.load(sys.argv[2]) if sys.argv[3] == "judge" else load_backbone(sys.argv[2])
print(status("VmHWM") - before)
"""


@pytest.fixture(scope="module", params=["bfloat16", "float32"])
def wide(
    request: pytest.FixtureRequest,
    hub_folders: HubFolders,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A run folder, with its checkpoint stored in either format inside."""
    folder = tmp_path_factory.mktemp("wide")
    shape = folder / "shape"
    shutil.copytree(hub_folders("Qwen3-VL-4B-Instruct"), shape)
    config = json.loads((shape / "config.json").read_text(encoding="utf-8"))
    config["text_config"] |= WIDE
    config["text_config"]["rope_scaling"]["mrope_section"] = [12, 10, 10]
    config["vision_config"]["out_hidden_size"] = WIDE["hidden_size"]
    write_json(shape / "config.json", config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUSTOS_CACHE", str(folder / "cache"))
        checkpoint = random_checkpoint(str(shape))
    if request.param == "float32":
        for shard in checkpoint.glob("*.safetensors"):
            weights = {name: weight.float() for name, weight in load_file(shard).items()}
            save_file(weights, shard, metadata={"format": "pt"})
    save_adapter(add_adapter(load_backbone(str(checkpoint)).model, r=16, alpha=16), folder)
    backbone = load_backbone(str(checkpoint), weights=False)
    card = JudgeCard.for_rubrics(backbone, {"hieval-qs": ("plain/any",)}, 1024)
    write_json(folder / CARD_FILE, card.model_dump(mode="json"))
    return folder


@pytest.mark.slow
@pytest.mark.skipif(
    not computes_bfloat16(torch.device("cpu")), reason="this CPU holds rounded weights in float32"
)
@pytest.mark.parametrize("what", ["judge", "backbone"])
def test_loading_takes_little_more_than_the_weights(wide: Path, small: str, what: str) -> None:
    card = JudgeCard.model_validate_json((wide / CARD_FILE).read_bytes())
    shell = load_backbone(card.backbone, weights=False).model
    weights = 2 * sum(parameter.numel() for parameter in shell.parameters())
    assert weights > 400e6
    source = str(wide) if what == "judge" else card.backbone
    command = [sys.executable, "-c", MEASURE, small, source, what]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) <= 1.25 * weights
