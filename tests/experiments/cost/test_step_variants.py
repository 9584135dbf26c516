"""Variants in processes of their own, and the ratios between them."""

from pathlib import Path

import pytest

from experiments.cost.step_variants import FLOOR, compare_steps

PRINTED = {
    FLOOR: {"peak_mib": 100},
    "quick": {"peak_mib": 150, "seconds_per_step": 2.0, "loss": 1.5},
    "slow": {"peak_mib": 300, "seconds_per_step": 5.0, "loss": 1.5},
}


def test_ratios_are_to_the_first_variant_above_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = f"import json, sys\nassert sys.argv[3:] == ['--shape', 'x']\nprinted = {PRINTED}\n"
    module = tmp_path / "made_up_cost.py"
    module.write_text(code + "print(json.dumps(printed[sys.argv[2]]))\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = compare_steps("made_up_cost", tuple(PRINTED), "--shape", "x")
    assert found == {
        "quick": {
            **{"seconds_per_step": 2.0, "loss": 1.5, "mib_above_weights": 50},
            **{"time_ratio": 1.0, "memory_ratio": 1.0},
        },
        "slow": {
            **{"seconds_per_step": 5.0, "loss": 1.5, "mib_above_weights": 200},
            **{"time_ratio": 2.5, "memory_ratio": 4.0},
        },
    }
