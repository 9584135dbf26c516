"""Short runs of every stage, by one process or by several, which share the model or its moments."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.fsdp import FSDPModule

from judging.types import LabelledExample
from tests.gpu.steps import first_gradient_into
from tests.tiny import Family, save_picture
from tests.train.made_up import analysed, critique_pair, example, killed_after, recipe_of, trainer
from tests.train.plan.measured import ROWS, long_rows, num_bytes, peak_of_step
from train.loop.trainer import Trainer
from train.methods.base import LossMethod
from train.methods.critique import Critique
from train.methods.focal import Focal
from train.methods.joint import Joint
from train.methods.reward import Reward
from train.setup.engines import FSDP, ZERO
from train.setup.recipe import Recipe
from train.setup.run_log import RUN_LOG

METHODS: dict[str, type[LossMethod]] = {
    **{"focal": Focal, "joint": Joint, "text": Critique, "reward": Reward}
}
STEPS = 3
FAMILIES: tuple[Family, ...] = ("qwen2_5_vl", "qwen3_vl")


@dataclass(frozen=True)
class Case:
    """A short run: of which stage, on which family, with which keys of the recipe."""

    kind: str
    family: Family
    keys: Mapping[str, Any] = field(default_factory=dict)
    killed_at: int | None = None
    """Step after whose checkpoint the run is killed."""

    def __str__(self) -> str:
        return "-".join([self.kind, self.family, *self.keys])


# Every row is a micro-batch: one process has one less than the other.
QUICK = [Case("focal", "qwen2_5_vl", {"optim__token_budget": 1, "optim__batch_size": 5})]
QUICK += [Case("focal", "qwen3_vl")]
SLOW = [Case(*values) for values in product(("focal", "joint", "text", "reward"), FAMILIES)]
SLOW += [
    Case("focal", "qwen3_vl", {"optim__batch_size": 1}),  # one process has no row
    Case("joint", "qwen3_vl", {"run__gradient_checkpointing": True}),
    Case("text", "qwen2_5_vl", {"run__gradient_checkpointing": True}),
    Case("focal", "qwen3_vl", {"adapter__dora": True}),
]


def rows(kind: str, folder: Path, count: int, start: int = 0) -> list[LabelledExample]:
    """Rows of a stage, some of them with a picture; their weights differ."""
    # Each process writes its own, or one would read a picture that another is writing.
    pictures = folder / f"pictures-{os.environ.get('RANK', 0)}"
    pictures.mkdir(exist_ok=True)
    picture = (save_picture(pictures / "b.png", 60, 60),)
    if kind == "joint":  # two tasks, as in a second stage
        return [*analysed(pictures, count // 2, start), *rows("focal", folder, count // 2, start)]
    make = example if kind == "focal" else critique_pair
    return [
        make(i, weight=1.0 + i % 3, images=picture if i % 5 == 0 else ())
        for i in range(start, start + count)
    ]


def settings(case: Case, out: Path) -> Recipe:
    """Keys under which a wrong scale of the gradient shows: it is clipped, but not by much."""
    keys: dict[str, Any] = {
        **{"optim__max_steps": STEPS, "optim__warmup_ratio": 0.0, "optim__max_grad_norm": 0.5},
        **{"run__log_every": 1, "run__save_every": 1, "run__eval_every": 2, "run__trackers": []},
    }
    return recipe_of(METHODS[case.kind].recipe_class, out, **(keys | dict(case.keys)))


def learner(
    case: Case, backbone_folder: str, out: Path, train: list[LabelledExample] | None = None
) -> Trainer:
    """Return a trainer of a case, on rows of its own or on given ones."""
    out.mkdir(parents=True, exist_ok=True)
    chosen = settings(case, out)
    train = train or rows(case.kind, out, max(12, STEPS * chosen.optim.batch_size))
    val = rows(case.kind, out, 5, 900)  # an odd number: one process has a batch less
    return trainer(chosen, backbone_folder, train, val, METHODS[case.kind])


def run(case: Case, backbone_folder: str, out: Path) -> None:
    """Train, and keep the gradients of the first step in the run folder."""
    trained = learner(case, backbone_folder, out)
    gradients: dict[str, Tensor] = {}
    learnt = sum(p.numel() for p in trained.parameters)
    killed = killed_after(case.killed_at) if case.killed_at else nullcontext()
    with first_gradient_into(gradients, learnt), killed:
        trained.fit()
    if trained.accelerator.is_main_process:
        save_file(gradients, out / "gradients.safetensors")
        (out / "held.json").write_text(json.dumps(held(trained)), encoding="utf-8")
    RUN_LOG.close_file()  # as the end of its process would, so that another goes on in the folder
    trained.free_memory()


def held(trained: Trainer) -> dict[str, float]:
    """Bytes that this process holds of a model and its optimizer, and its share of the layers."""
    for module in trained.tree_model.modules():
        if isinstance(module, FSDPModule):
            module.reshard()  # what belongs to no layer is still whole after a validation
    named = dict(trained.tree_model.named_parameters())
    layers = [p for name, p in named.items() if ".layers." in name]
    learnt = [p for p in named.values() if p.requires_grad]
    stepped = [p for group in trained.optimizer.param_groups for p in group["params"]]
    state = trained.optimizer.optimizer.state
    moments = [state[p][key] for p in stepped for key in ("exp_avg", "exp_avg_sq")]
    return {
        "weights": sum(num_bytes(p) for p in named.values() if not p.requires_grad),
        "adapter": sum(map(num_bytes, learnt)),
        "optimizer": sum(map(num_bytes, moments)),
        "share": sum(map(num_bytes, layers)) / sum(p.numel() * p.element_size() for p in layers),
    }


def measure_peak(backbone_folder: str, out: Path) -> None:
    """Keep the peak memory of a step in which each process has a micro-batch."""
    case, train = Case("focal", "qwen2_5_vl"), long_rows(2 * ROWS)
    trained = learner(case, backbone_folder, out, train)
    halves = [list(range(ROWS)), list(range(ROWS, 2 * ROWS))]
    folder = out / str(trained.accelerator.process_index)
    folder.mkdir()
    peak = peak_of_step(trained, halves, folder)
    (folder / "peak.json").write_text(json.dumps(peak), encoding="utf-8")
    trained.free_memory()


def main(out: Path, cases: Sequence[Case], folders: Mapping[str, str], engine: str = FSDP) -> None:
    """Do cases together, then begin a run and go on with one that another process began.

    Args:
        out: Folder of the run folders.
        cases: What to do.
        folders: Backbones by family.
        engine: Variable that asks for it.
    """
    if engine == ZERO:
        import deepspeed

        # Nothing is to be compiled: gloo alone, without DeepSpeed's own way through shared memory.
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    first = Case("focal", "qwen3_vl")
    begun = replace(first, killed_at=2)
    work = [(case, out / str(case)) for case in cases]
    for case, folder in [*work, (begun, out / "begun-together"), (first, out / "begun-alone")]:
        os.environ[engine] = "true"  # each trainer takes it out of the environment
        run(case, folders[case.family], folder)
    if engine == FSDP:
        os.environ[engine] = "true"
        measure_peak(folders["qwen2_5_vl"], out / "measured")
    sys.stdout.flush()
    torch.distributed.barrier()
    os._exit(0)  # gloo's threads may abort or hang an interpreter that ends
