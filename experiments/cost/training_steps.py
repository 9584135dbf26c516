"""Training steps of custos and of TRL's SFTTrainer over the same rows, timed one by one.

A helper of programs that measure training; each runs it in a process of its own, so that memory is
the step's alone: ``python -m experiments.cost.training_steps --trainer custos ...`` prints JSON.
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
from typing import Any, Literal, get_args

from data_prep.made.quick_scores import generate_examples
from judging.files.records import read_records, write_records
from judging.models.adapters import add_adapter
from judging.models.backbones import load_backbone
from judging.models.devices import computes_bfloat16, use_device
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import END_TOKEN, LabelledExample
from train.hieval_stage1 import main as train_quick_scores

TrainerName = Literal["custos", "TRL"]
LEARNING_RATE = 1e-3
VALIDATED = 4
"""Rows of the validations before and after training, which are not timed."""


@dataclass(frozen=True)
class Trained:
    """Model and adapter that both trainers train."""

    backbone: str = "embedded@1"
    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    checkpointing: bool = False
    """Whether activations are computed again for the gradient."""


@dataclass(frozen=True)
class ProcessorUse:
    """A moment, and the processor seconds that were used before it."""

    elapsed: float
    """Seconds on the clock."""
    process: float
    """Processor seconds of this process, all threads."""
    system: float
    """Processor seconds of all processes, with what the host took from a virtual machine."""

    @classmethod
    def now(cls) -> ProcessorUse:
        """Read the counters; Linux only."""
        line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
        user, nice, system, _, _, interrupts, soft_interrupts, stolen = map(int, line.split()[1:9])
        ticks = user + nice + system + interrupts + soft_interrupts + stolen
        return cls(time.perf_counter(), time.process_time(), ticks / os.sysconf("SC_CLK_TCK"))

    def other_cores(self, since: ProcessorUse) -> float:
        """Return how many cores other processes kept busy since another moment, on average."""
        others = (self.system - since.system) - (self.process - since.process)
        return max(0.0, others / (self.elapsed - since.elapsed))


@dataclass
class StepLog:
    """The time at which each optimizer step ended, and the resident memory then."""

    ended: list[ProcessorUse] = field(default_factory=list)
    resident_mib: list[float] = field(default_factory=list)
    peak_mib: float = 0.0

    def add(self, *optimizer_and_arguments: Any) -> None:
        """Record the end of an optimizer step; on a GPU, wait for it."""
        import torch

        on_gpu = torch.cuda.is_initialized()
        if on_gpu:
            torch.cuda.synchronize()
        self.ended.append(ProcessorUse.now())
        self.resident_mib.append(resident_mib())
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        self.peak_mib = (torch.cuda.max_memory_allocated() if on_gpu else most) / 2**20

    def report(self, batch: int, warm: int) -> dict[str, Any]:
        """Return rows per second after the first ``warm`` steps, and memory in MiB."""
        first, last = self.ended[warm - 1], self.ended[-1]
        return {
            "rows_per_second": batch * (len(self.ended) - warm) / (last.elapsed - first.elapsed),
            "other_cores": last.other_cores(first),
            "peak_mib": self.peak_mib,
            "resident_mib": self.resident_mib,
        }


def main(argv: Sequence[str] | None = None) -> None:
    """Run steps of one trainer and print their report as JSON."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainer", choices=get_args(TrainerName), required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm", type=int, required=True)
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--passes", type=int, default=1, help="of TRL, in a step")
    parser.add_argument("--trained", type=json.loads, default={}, help="fields of Trained")
    arguments = parser.parse_args(argv)
    steps, batch = arguments.steps, arguments.batch
    rows = training_rows(arguments.data, steps * batch)
    log = StepLog()
    register_optimizer_step_post_hook(log.add)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(sys.stderr):
        trained = Trained(**arguments.trained)
        if arguments.trainer == "custos":
            custos_steps(rows, batch, Path(folder), trained)
        else:
            trl_steps(rows, batch, Path(folder), trained, arguments.passes)
    sys.stdout.write(json.dumps(log.report(batch, arguments.warm)))


def run_steps(
    trainer: TrainerName,
    data: Path | None,
    *,
    steps: int,
    warm: int,
    batch: int,
    passes: int = 1,
    settings: Mapping[str, str] | None = None,
    trained: Trained | None = None,
) -> dict[str, Any]:
    """Run :func:`main` in a process of its own; return its report.

    The speed leaves out the first ``warm`` steps, of ``batch`` rows each. TRL reads the rows of a
    step in ``passes`` forward passes; custos decides by itself. Without data, rows are made.
    """
    numbers = {"--steps": steps, "--warm": warm, "--batch": batch}
    command = [sys.executable, "-m", "experiments.cost.training_steps", "--trainer", trainer]
    command += [str(part) for pair in numbers.items() for part in pair]
    command += ["--passes", str(passes)]
    command += ["--data", str(data)] if data else []
    command += ["--trained", json.dumps(asdict(trained))] if trained else []
    done = subprocess.run(
        command,
        env={**os.environ, **(settings or {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def training_rows(data: Path | None, count: int) -> list[LabelledExample]:
    """Return the first rows of a file, again from its start if it is short, or made rows."""
    if data is None:
        return list(generate_examples(count, 0, "train", "open"))
    rows = [row for _, row in read_records(data, LabelledExample)]
    return [rows[i % len(rows)].model_copy(update={"id": str(i)}) for i in range(count)]


def custos_steps(rows: list[LabelledExample], batch: int, folder: Path, trained: Trained) -> None:
    """Train with ``train/hieval_stage1.py``."""
    files = {"train": folder / "train.jsonl", "val": folder / "val.jsonl"}
    write_records(files["train"], rows)
    write_records(files["val"], rows[:VALIDATED])
    overrides = {
        "backbone": trained.backbone,
        **{f"data.{split}": file for split, file in files.items()},
        "data.cal": "null",
        "data.test": "null",
        "data.allow_overlap": "true",
        "adapter.init": "null",
        "adapter.r": trained.rank,
        "adapter.alpha": trained.alpha,
        "adapter.dropout": trained.dropout,
        "run.gradient_checkpointing": str(trained.checkpointing).lower(),
        "optim.lr": LEARNING_RATE,
        "optim.epochs": 1,
        "optim.batch_size": batch,
        "run.output": folder / "run",
        "run.eval_every": len(rows),
        "run.save_every": len(rows),
    }
    options = [f"{key}={value}" for key, value in overrides.items()]
    train_quick_scores(["--config", "embedded/evouna", *options])


def trl_steps(
    rows: list[LabelledExample], batch: int, folder: Path, trained: Trained, passes: int
) -> None:
    """Train with TRL on the same tokens; the loss is that of the label."""
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


def resident_mib() -> float:
    """Return the resident memory of this process, in MiB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


if __name__ == "__main__":
    main()
