"""Time of ranking a tournament: Bradley-Terry strengths with intervals, and online Elo.

python -m experiments tournament_ranking --out runs/tournament_cost.json
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from evaluation.ranking.agreement import kendall_tau_b
from evaluation.ranking.bradley_terry import RATING_SCALE, bradley_terry
from evaluation.ranking.elo import elo_table
from evaluation.ranking.match_results import MatchResults
from judging.files.records import write_json

MODELS, MATCHES, RESAMPLES = 20, 100_000, 1_000
TIE_SHARE = 0.15


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--matches", type=int, default=MATCHES)
    parser.add_argument("--resamples", type=int, default=RESAMPLES)
    arguments = parser.parse_args(argv)
    measured = measure(arguments.models, arguments.matches, arguments.resamples)
    if arguments.out:
        write_json(arguments.out, measured)
    Console().print_json(data=measured)


def measure(models: int, matches: int, resamples: int, seed: int = 0) -> dict[str, Any]:
    """Time both rankings of a simulated tournament and compare them with the true order.

    Strengths of neighbouring models differ by 20 Elo points; each match has two random models.
    """
    rng = np.random.default_rng(seed)
    strengths = np.arange(0, 20 * models, 20, dtype=np.float64)
    first = rng.integers(models, size=matches)
    second = (first + rng.integers(1, models, size=matches)) % models
    chance = 1 / (1 + 10 ** ((strengths[second] - strengths[first]) / RATING_SCALE))
    points = np.where(
        rng.random(matches) < TIE_SHARE, 1, 2 * (rng.random(matches) < chance).astype(np.int64)
    )
    names = tuple(f"model {number:02}" for number in range(models))
    drawn = MatchResults(names, first, second, points)
    started = time.perf_counter()
    rated = bradley_terry(drawn, resamples=resamples, seed=seed)
    fitted = time.perf_counter()
    elo = elo_table(drawn, seed=seed)
    ended = time.perf_counter()
    online = np.array([elo[name]["mean"] for name in names])
    return {
        "models": models,
        "matches": matches,
        "resamples": resamples,
        "bradley_terry_seconds": fitted - started,
        "elo_seconds": ended - fitted,
        "bradley_terry_tau": float(kendall_tau_b(rated.values, strengths)),
        "elo_tau": float(kendall_tau_b(online, strengths)),
    }
