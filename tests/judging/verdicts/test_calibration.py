from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from judging.errors import CustosError
from judging.verdicts.calibration import Calibration, CalibrationSet


def _calibration(**fields: object) -> Calibration:
    given = {
        "temperature": 2.0,
        "bias": {"Correct": 1.0, "Wrong": -1.0},
        "n": 5,
        "nll_before": 1.0,
        "nll_after": 0.5,
    }
    return Calibration.model_validate(given | fields)


def test_posterior_by_hand() -> None:
    # Scores: ln(1/9) / 2 + 1 = 1 - ln 3 and ln(1) / 2 - 1 = -1.
    # Odds: e^(2 - ln 3) = e^2 / 3.
    odds = np.e**2 / 3
    found = _calibration().posterior({"Correct": float(np.log(1 / 9)), "Wrong": 0.0})
    assert found["Correct"] == pytest.approx(odds / (1 + odds), rel=1e-12)
    assert sum(found.values()) == pytest.approx(1, rel=1e-12)


def test_posterior_of_hopeless_labels_is_finite() -> None:
    found = _calibration().posterior({"Correct": -4000.0, "Wrong": -9000.0})
    assert found == {"Correct": 1.0, "Wrong": 0.0}


def test_a_set_is_bound_to_its_judge(tmp_path: Path) -> None:
    fitted = CalibrationSet(judge="abc", rubrics={"hieval-qs/plain/any": _calibration()})
    path = tmp_path / "calibration.json"
    path.write_text(fitted.model_dump_json(), encoding="utf-8")
    assert CalibrationSet.load(path, "abc") == fitted
    with pytest.raises(CustosError, match=r"fitted for judge abc, but this judge is xyz"):
        CalibrationSet.load(path, "xyz")


def test_its_id_follows_its_content() -> None:
    one = CalibrationSet(judge="abc", rubrics={"r": _calibration()})
    same = CalibrationSet(judge="abc", rubrics={"r": _calibration()})
    other = CalibrationSet(judge="abc", rubrics={"r": _calibration(temperature=2.1)})
    assert one.id == same.id != other.id


@pytest.mark.parametrize(
    "content", ["", "[]", '{"judge": "abc"}', '{"judge": "abc", "rubrics": {}, "extra": 1}']
)
def test_malformed_files_are_one_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(CustosError, match=r"calibration\.json: "):
        CalibrationSet.load(path, "abc")


def test_a_temperature_of_zero_is_refused(tmp_path: Path) -> None:
    content = {"judge": "abc", "rubrics": {"r": _calibration().model_dump() | {"temperature": 0}}}
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(CustosError, match="greater than 0"):
        CalibrationSet.load(path, "abc")
