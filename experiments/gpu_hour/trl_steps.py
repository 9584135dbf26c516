"""Training steps of TRL's SFTTrainer, timed one by one.

``python -m experiments.gpu_hour.trl_steps ...`` takes them in a process of its own, so that memory
is theirs alone, and prints JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from judging.files.records import read_records
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from judging.models.devices import computes_bfloat16, use_device
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import END_TOKEN, LabelledExample

LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Trained:
    """Model and adapter that are trained."""

    backbone: str
    rank: int
    alpha: int
    dropout: float
    checkpointing: bool
    """Compute activations again for the gradient, to save memory."""


@dataclass
class StepLog:
    """Log of optimizer steps: when each ended, in seconds, and the largest memory."""

    ended: list[float] = field(default_factory=list)
    peak_mib: float = 0.0

    def add(self, *optimizer_and_arguments: Any) -> None:
        """Record the end of an optimizer step; on a GPU, wait for it."""
        import torch

        on_gpu = torch.cuda.is_initialized()
        if on_gpu:
            torch.cuda.synchronize()
        self.ended.append(time.perf_counter())
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.peak_mib = (torch.cuda.max_memory_allocated() if on_gpu else most) / 2**20


def main(argv: Sequence[str] | None = None) -> None:
    """Take steps and print rows per second after the first of them, and memory, as JSON."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    for name in ("--steps", "--warm", "--batch", "--passes"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--trained", type=json.loads, required=True, help="fields of Trained")
    given = parser.parse_args(argv)
    rows = [row for _, row in read_records(given.data, LabelledExample)]
    log = StepLog()
    register_optimizer_step_post_hook(log.add)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        rows = rows[: given.steps * given.batch]
        train(rows, given.batch, Path(folder), Trained(**given.trained), given.passes)
    timed = given.batch * (len(log.ended) - given.warm)
    rate = timed / (log.ended[-1] - log.ended[given.warm - 1])
    sys.stdout.write(json.dumps({"rows_per_second": rate, "peak_mib": log.peak_mib}))


def run_steps(
    data: Path,
    trained: Trained,
    *,
    steps: int,
    warm: int,
    batch: int,
    passes: int = 1,
    settings: Mapping[str, str] | None = None,
) -> dict[str, float]:
    """Run :func:`main` in a process of its own, with ``settings`` in its environment.

    The speed leaves out the first ``warm`` steps, of ``batch`` rows each, which are read in
    ``passes`` forward passes.
    """
    numbers = {"--steps": steps, "--warm": warm, "--batch": batch, "--passes": passes}
    command = [sys.executable, "-m", "experiments.gpu_hour.trl_steps", "--data", str(data)]
    command += [str(part) for pair in numbers.items() for part in pair]
    command += ["--trained", json.dumps(asdict(trained))]
    environment = {**os.environ, **(settings or {})}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    report: dict[str, float] = json.loads(done.stdout)
    return report


def train(
    rows: Sequence[LabelledExample], batch: int, folder: Path, trained: Trained, passes: int
) -> None:
    """Train on the tokens that custos trains on; the loss is that of the label."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    # Emulated bfloat16 takes minutes a step; custos leaves it out on such processors, too.
    device = use_device()
    has_bfloat16 = computes_bfloat16(device)
    backbone = load_backbone(trained.backbone, dtype="bfloat16" if has_bfloat16 else "float32")
    backbone.model.set_attn_implementation("sdpa")  # ours needs a mask of its own
    encoder = Encoder(backbone)
    tokens = []
    for row in rows:
        task = get_task(row.task)
        [prompt] = encoder.encode([(task, row)])
        answer = encoder.text(task.target(row) + END_TOKEN)
        ids = [*prompt.prefix_ids, *prompt.suffix_ids, *answer]
        mask = [0] * (len(ids) - len(answer)) + [1] * len(answer)
        tokens.append({"input_ids": ids, "completion_mask": mask})

    SFTTrainer(
        model=add_adapter(
            backbone.model, r=trained.rank, alpha=trained.alpha, dropout=trained.dropout
        ),
        args=SFTConfig(
            output_dir=str(folder),
            per_device_train_batch_size=batch // passes,
            gradient_accumulation_steps=passes,
            num_train_epochs=1,
            learning_rate=LEARNING_RATE,
            completion_only_loss=True,
            max_length=None,
            bf16=has_bfloat16,
            use_cpu=device.type == "cpu",
            activation_checkpointing=trained.checkpointing,
            save_strategy="no",
            report_to="none",
        ),
        train_dataset=Dataset.from_list(tokens),
        processing_class=backbone.tokenizer,
    ).train()


if __name__ == "__main__":
    main()
