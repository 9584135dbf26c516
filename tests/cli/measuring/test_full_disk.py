"""Commands, each while one write on its files fails, as on a full disk."""

import errno
import os
from pathlib import Path

import pytest
from typer.main import get_command

from cli.main import app
from evaluation.outcomes import save_evaluation
from judging.files.records import write_records
from judging.judge import Judge
from tests.cli.measuring.made_up import UnsteadyJudge, write_answers
from tests.evaluation.attacks.made_up import example, examples
from tests.evaluation.made_up import evaluation
from tests.failing_files import FailingFiles

COMMAND = get_command(app)
ATTACK = "attack fake --family denial --search 1 --pool 2 --no-stability"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_pictures: None) -> Path:
    """Labelled rows and, in ``report``, verdicts on such."""
    monkeypatch.setattr(Judge, "load", lambda source: UnsteadyJudge())
    wrong = example("Who composed Aida?", ["Verdi"], responses=("Puccini",), label="Wrong")
    write_records(tmp_path / "attacked.jsonl", [*examples(), wrong])
    write_answers(tmp_path / "data.jsonl", 12)
    save_evaluation(tmp_path / "report", *evaluation(accuracy=0.9, seed=1))
    return tmp_path


@pytest.mark.parametrize(
    ("command", "num_files"),
    [
        ("eval fake --data {data}/data.jsonl --out {out}", 7),
        (ATTACK + " --data {data}/attacked.jsonl --out {out}", 6),
        ("compare {data}/report {data}/report --json {out}/new.json", 1),
        ("recipe copy embedded/demo {out}/mine.yaml", 1),
    ],
    ids=["eval", "attack", "compare", "recipe"],
)
def test_a_full_disk_is_one_line_and_the_same_command_goes_on(
    data: Path, capsys: pytest.CaptureFixture[str], command: str, num_files: int
) -> None:
    def run(out: Path, files: FailingFiles | None = None) -> int:
        words = command.format(data=data, out=out).split()
        with (files or FailingFiles(Path("none"))).failing():
            status: int | None = COMMAND.main(words, prog_name="custos", standalone_mode=False)
        return status or 0

    (data / "clean").mkdir()
    assert run(data / "clean", calls := FailingFiles(data / "clean")) == 0
    names = sorted(os.listdir(data / "clean"))
    writes = {call: n for n, call in reversed(list(enumerate(calls.calls))) if "write" in call}
    assert len(writes) == num_files, writes
    for call, number in writes.items():
        (out := data / f"full-{number}").mkdir()
        capsys.readouterr()
        assert run(out, FailingFiles(out, number, errno.ENOSPC)) == 2, call
        [line] = [line for line in capsys.readouterr().err.splitlines() if "error: " in line]
        final = call.split(" .")[1].rpartition(".")[0]
        assert line.startswith(f"error: {out / final}: {os.strerror(errno.ENOSPC)}; "), call
        assert not (out / final).exists() or final.endswith(".partial"), call
        assert run(out) == 0, call
        assert sorted(os.listdir(out)) == names, call
