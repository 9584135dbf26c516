"""A judge's folder after ``custos calibrate``, and after its training was given once more."""

import json
import shutil
from pathlib import Path

import pytest

from judging.errors import CustosError
from judging.judge import Judge
from judging.models.adapters import ADAPTER_FILE
from tests.cli.made_up import succeed
from tests.train.made_up import example, write_recipe, write_split
from train import hieval_stage1

CALIBRATION = "calibration.json"


@pytest.fixture(scope="module")
def trained(small: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with the recipe of a finished run."""
    folder = tmp_path_factory.mktemp("trained")
    hieval_stage1.main(["--config", str(write_recipe(folder, small))])
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of its run folder."""
    return Path(shutil.copytree(trained / "run", tmp_path / "run"))


def calibrate_again(run: Path, tmp_path: Path) -> str:
    """Calibrate on other rows than the training did; return what is printed."""
    rows = [example(number, question=f"Which {number}?") for number in range(400, 430)]
    data = write_split(tmp_path / "own.jsonl", rows)
    return succeed("calibrate", run, "--data", data).stdout


def test_no_figure_of_an_earlier_calibration_stays(
    run: Path, trained: Path, tmp_path: Path
) -> None:
    test = trained / "test.jsonl"
    succeed("card", run, "--data", f"test={test}", "--out", run, "--no-zero-shot")
    first_readme = (run / "README.md").read_text(encoding="utf-8")
    assert "ECE" in first_readme and "## Reliability" in first_readme
    (run / "verdicts.jsonl").touch()  # perhaps of custos grade

    said = calibrate_again(run, tmp_path)
    assert "removed, as measured before: report.md, report.json, " in said
    files = {path.name for path in run.iterdir()}
    gone = {"report.md", "confusion.png", "reliability.png", "reliability.json", "reliability.md"}
    assert not files & {"report.json", *gone}
    assert files >= {"verdicts.jsonl", "learning_curve.png", "README.md"}
    readme = (run / "README.md").read_text(encoding="utf-8")
    note = "**Calibrated again on `own.jsonl`: "
    assert readme.startswith(f"# run\n\n{note}")
    assert readme.count("\n## Data") == 1 and "## Reliability" not in readme

    succeed("card", run, "--data", f"test={test}", "--out", run, "--no-zero-shot")
    card = (run / "reliability.json").read_bytes()
    assert "removed" not in calibrate_again(run, tmp_path), "it is the same calibration"
    assert (run / "reliability.json").read_bytes() == card

    shutil.copyfile(trained / "run" / CALIBRATION, run / CALIBRATION)
    calibrate_again(run, tmp_path)
    assert (run / "README.md").read_text(encoding="utf-8") == readme, "one line says it"
    succeed("eval", run, "--data", test, "--out", run, "--no-zero-shot")
    assert (run / "report.json").is_file()


@pytest.mark.parametrize(
    "killed", ["evaluation.report.reliability.remove_figures", "cli.eval.write_json"]
)
def test_no_figure_stays_where_a_calibration_was_killed(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: str
) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(AssertionError):
        patch.setattr(killed, kill)
        calibrate_again(run, tmp_path)
    calibrate_again(run, tmp_path)
    assert not (run / "report.json").exists()
    assert "Calibrated again" in (run / "README.md").read_text(encoding="utf-8")


def test_nothing_is_written_beside_a_card_that_cannot_be_read(run: Path, tmp_path: Path) -> None:
    before = (run / CALIBRATION).read_bytes()
    (run / "README.md").write_bytes(b"\xff")
    with pytest.raises(AssertionError, match="not UTF-8"):
        calibrate_again(run, tmp_path)
    assert (run / CALIBRATION).read_bytes() == before
    assert (run / "report.json").is_file()


def test_a_finished_training_given_again_keeps_a_later_calibration(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, command = trained / "run", ["--config", str(trained / "tiny.yaml")]
    of_training = (run / CALIBRATION).read_bytes()
    first = json.loads((run / "report.json").read_text(encoding="utf-8"))
    calibrate_again(run, tmp_path)
    later = (run / CALIBRATION).read_bytes()
    assert later != of_training

    hieval_stage1.main(command)
    assert (run / CALIBRATION).read_bytes() == later
    assert "calibration.json fits this judge and is kept" in capsys.readouterr().err
    report = json.loads((run / "report.json").read_text(encoding="utf-8"))
    assert report["metrics"]["ece"] != first["metrics"]["ece"], "measured with the later one"
    assert "Calibrated again" not in (run / "README.md").read_text(encoding="utf-8")

    other = json.loads(of_training) | {"judge": "another"}
    (run / CALIBRATION).write_text(json.dumps(other), encoding="utf-8")
    (run / "reliability.json").touch()
    hieval_stage1.main(command)
    assert not (run / "reliability.json").exists(), "it was measured with the other one"
    assert (run / CALIBRATION).read_bytes() == of_training, "that of no other judge is kept"


def test_a_calibration_is_kept_with_its_weights_alone(small: str, tmp_path: Path) -> None:
    """Where no row calibrates or tests the judge, it is not even loaded."""
    run, keys = tmp_path / "run", ("data.cal=null", "data.test=null", "optim.max_steps=1")
    command = ["--config", str(write_recipe(tmp_path, small)), *keys]
    hieval_stage1.main(command)
    calibrate_again(run, tmp_path)
    fitted = (run / CALIBRATION).read_bytes()
    hieval_stage1.main(command)
    assert (run / CALIBRATION).read_bytes() == fitted
    (run / ADAPTER_FILE).write_bytes(b"another")
    hieval_stage1.main(command)
    assert not (run / CALIBRATION).exists()


@pytest.mark.parametrize("content", [None, b"no JSON"])
def test_a_calibration_that_does_not_fit_is_replaced(
    run: Path, tmp_path: Path, content: bytes | None
) -> None:
    fitted = json.loads((run / CALIBRATION).read_bytes())
    content = content or json.dumps(fitted | {"judge": "another"}).encode()
    (run / CALIBRATION).write_bytes(content)
    with pytest.raises(CustosError, match=CALIBRATION):
        Judge.load(str(run))
    calibrate_again(run, tmp_path)
    judge = Judge.load(str(run))
    assert judge.calibration is not None and judge.calibration.judge == fitted["judge"]
