"""Run by ``torchrun``: a run that stops early, and how far each process came.

``torchrun ... -m tests.train.loop.early_stop BACKBONE OUT``
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from tests.train.made_up import examples, recipe, trainer

PATIENCE = 2


def run(backbone: str, out: Path) -> None:
    """Fit with steps too small to change a weight, so that no validation is better."""
    settings = recipe(
        out / "run",
        optim__lr=1e-30,
        run__eval_every=1,
        run__log_every=5,
        run__patience=PATIENCE,
    )
    learner = trainer(settings, backbone, examples(8 * 4))
    progress = learner.fit()
    rank = learner.accelerator.process_index
    (out / f"{rank}.json").write_text(json.dumps(asdict(progress)), encoding="utf-8")
    learner.accelerator.wait_for_everyone()
    if learner.accelerator.num_processes > 1:
        sys.stdout.flush()
        os._exit(0)  # gloo's threads may abort or hang an interpreter that ends


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]))
