"""A training run as ``custos train`` starts it: a recipe, the user's files, and processes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from judging.errors import CustosError
from judging.types import Split
from train.setup.held_out import DATA_FOLDER, write_run_data
from train.setup.processes import run_script
from train.setup.recipe import read_values
from train.setup.recipe_files import find_recipe, recipe_of_task, script_of

HELD_OUT: tuple[Split, ...] = ("val", "cal", "test")
REWARD_SCRIPT = "bradley_terry"
"""The script whose judges give no labels: there is nothing to calibrate or to report."""


@dataclass(frozen=True)
class TrainingRun:
    """What one call of ``custos train`` does."""

    script: str
    """Name of the training script in ``train/``."""
    recipe: Path
    overrides: tuple[str, ...]
    """``key.path=value``, the user's last."""
    output: Path
    """Run folder."""
    files: Mapping[Split, Path]
    """Files of rows that the user gave, by split; empty: the recipe's."""
    held_out: tuple[Split, ...]
    """Splits to divide off the training file."""
    seed: int
    command: str
    """Command that was typed."""

    @classmethod
    def plan(
        cls,
        recipe: str,
        keys: Sequence[str],
        files: Mapping[Split, Path],
        *,
        init: str | None,
        out: Path | None,
        seed: int | None,
        command: str,
    ) -> TrainingRun:
        """Decide on recipe, script, files and run folder.

        Args:
            recipe: File or name of a recipe, or name of a task.
            keys: ``key.path=value`` of the recipe.
            files: Files of rows by split.
            init: Judge to start from, if not the recipe's.
            out: Run folder, if not the recipe's.
            seed: Seed, if not the recipe's.
            command: Command that was typed.

        Raises:
            CustosError: If there is no such recipe, or a held-out file without a training file.
        """
        name = recipe_of_task(recipe)
        if files and "train" not in files:
            raise CustosError(f"--{next(iter(files))} needs --train; give both")
        if name and not files:
            raise CustosError(f"{recipe}: training for a task needs rows; give --train FILE")
        path = find_recipe(name or recipe)
        options = {"adapter.init": init, "run.output": out, "run.seed": seed}
        given = [f"{key}={json.dumps(str(value))}" for key, value in options.items() if value]
        values = read_values(path, [*given, *keys])
        script, run = script_of(path, values), values.get("run") or {}
        if not run.get("output"):
            raise CustosError(f"{path}: no run.output; give --out FOLDER")
        output = Path(run["output"])
        no_file = {key.partition("=")[0].removeprefix("data.") for key in keys}
        wanted = HELD_OUT[:1] if script == REWARD_SCRIPT else HELD_OUT
        held_out = tuple(s for s in wanted if s not in files and s not in no_file)
        if files:
            used = [split for split in ("train", *HELD_OUT) if split in (*files, *held_out)]
            data = {split: str(output / DATA_FOLDER / f"{split}.jsonl") for split in used}
            given = [f"data={json.dumps(data)}", *given]
        return cls(
            script,
            path,
            (*given, *keys),
            output,
            files,
            held_out,
            int(run.get("seed", 0)),
            command,
        )

    def write_data(self) -> str:
        """Write the rows of the run to its folder and return a line that says how they divide.

        Raises:
            CustosError: If a row is bad, or the folder belongs to another run.
        """
        counts = write_run_data(
            {split: [path] for split, path in self.files.items()},
            self.held_out,
            self.output,
            seed=self.seed,
            command=self.command,
        )
        sizes = ", ".join(f"{counts[split]:,} {split}" for split in counts if counts[split])
        division = "divided by question" if self.held_out else "rows"
        return f"data: {sizes} ({division}): {self.output / DATA_FOLDER}"

    def start(self, processes: int | None, config_file: Path | None) -> None:
        """Train; the process ends with an error line and status 1 if that fails."""
        arguments = ["--config", str(self.recipe), *self.overrides]
        run_script(
            self.script,
            arguments,
            self.output,
            command=self.command,
            processes=processes,
            config_file=config_file,
        )
