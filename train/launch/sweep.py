"""One recipe trained with several seeds, each in a run folder of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evaluation.measure import seed_statistics
from evaluation.report.evaluate import RECIPE_FILE
from judging.errors import CustosError, errors_at
from judging.files.records import decode_json, write_json
from judging.fingerprint import file_sha256
from train.setup.recipe import find_recipe

RESULT_FILE = "sweep.json"
REPORT_FILE = "report.json"


@dataclass(frozen=True)
class Sweep:
    """The runs of one recipe under several seeds."""

    recipe: str
    """File or name of the recipe, as it was typed."""
    keys: tuple[str, ...]
    """``key.path=value`` of the recipe, for all runs."""
    seeds: tuple[int, ...]
    out: Path
    """Folder with one run folder for each seed, and the result."""

    def folder(self, seed: int) -> Path:
        """Name the run folder of a seed."""
        return self.out / f"seed-{seed}"

    def open(self) -> None:
        """Note what is trained, so that no other sweep goes on in this folder."""
        path, identity = self.out / RESULT_FILE, self._identity()
        if path.is_file():
            kept = _read(path)
            if {key: kept.get(key) for key in identity} != identity:
                raise CustosError(
                    f"{self.out}: holds the runs of another recipe; give another --out"
                )
        else:
            self.out.mkdir(parents=True, exist_ok=True)
            write_json(path, {**identity, "seeds": [], "metrics": {}})

    def open_seeds(self) -> list[int]:
        """List the seeds whose run has no report yet."""
        return [seed for seed in self.seeds if not (self.folder(seed) / REPORT_FILE).is_file()]

    def train(self, seed: int, processes: int | None = None) -> None:
        """Train one seed, or go on where it was stopped, in a process that frees all memory."""
        options = ["--seed", str(seed), "--out", str(self.folder(seed))]
        options += ["--processes", str(processes)] if processes else []
        train = [sys.executable, "-m", "cli", "train", self.recipe, *self.keys, *options]
        if status := subprocess.call(train):
            if status == 130:
                raise KeyboardInterrupt
            raise CustosError(f"seed {seed}: training failed; the same command tries it again")
        if not (self.folder(seed) / REPORT_FILE).is_file():
            raise CustosError(
                f"{self.recipe}: has no test rows to measure with; give data.test=FILE"
            )

    def result(self) -> dict[str, Any]:
        """Gather the reports that there are, of runs on the same files; write the result."""
        done = [seed for seed in self.seeds if seed not in self.open_seeds()]
        reports = [_read(self.folder(seed) / REPORT_FILE) for seed in done]
        hashes: dict[str, str] = {}
        for seed in done:
            text = (self.folder(seed) / RECIPE_FILE).read_text(encoding="utf-8")
            for name, sha256 in yaml.safe_load(text)["provenance"]["sha256"].items():
                if hashes.setdefault(name, sha256) != sha256:
                    raise CustosError(
                        f"{self.out}: {name} was another file when seed {seed} was trained than "
                        f"for seed {done[0]}: train all seeds anew, in another folder"
                    )
        result = {**self._identity(), "seeds": done, "metrics": seed_statistics(reports)}
        write_json(self.out / RESULT_FILE, result)
        return result

    def _identity(self) -> dict[str, Any]:
        sha256 = file_sha256(find_recipe(self.recipe))
        return {"recipe": self.recipe, "recipe_sha256": sha256, "keys": list(self.keys)}


def _read(path: Path) -> dict[str, Any]:
    """Read a JSON object."""
    with errors_at(str(path)):
        content = decode_json(path.read_bytes())
        if not isinstance(content, dict):
            raise CustosError("expected a JSON object; it is no file of a sweep")
    return content


def sweep_rows(metrics: dict[str, dict[str, Any]]) -> Sequence[tuple[str, ...]]:
    """Write the cells of a table: metric, mean, standard deviation, interval."""

    def cell(number: float | None) -> str:
        return "-" if number is None else f"{number:.4f}"

    return [
        (name, cell(s["mean"]), cell(s["std"]), f"{cell(s['low'])} to {cell(s['high'])}")
        for name, s in metrics.items()
    ]
