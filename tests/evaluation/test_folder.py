from pathlib import Path

import pytest

from evaluation.outcomes import load_evaluation, save_evaluation
from judging.errors import CustosError
from tests.evaluation.made_up import evaluation


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    examples, verdicts = evaluation(unscored_every=7)
    save_evaluation(tmp_path / "run", examples, verdicts)
    assert load_evaluation(tmp_path / "run") == (examples, verdicts)


def test_misaligned_verdicts_are_not_saved(tmp_path: Path) -> None:
    examples, verdicts = evaluation()
    with pytest.raises(CustosError, match="row 1: verdict '179' does not belong to example '0'"):
        save_evaluation(tmp_path / "run", examples, verdicts[::-1])
    assert not (tmp_path / "run").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    examples, verdicts = evaluation()
    save_evaluation(tmp_path, examples, verdicts)
    (tmp_path / "verdicts.jsonl").unlink()
    with pytest.raises(CustosError, match=r"no verdicts.jsonl there: give the folder"):
        load_evaluation(tmp_path)


def test_files_that_do_not_line_up_name_the_folder(tmp_path: Path) -> None:
    examples, verdicts = evaluation()
    save_evaluation(tmp_path, examples, verdicts)
    lines = (tmp_path / "verdicts.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "verdicts.jsonl").write_text("".join(lines[1:]))
    with pytest.raises(CustosError, match=f"{tmp_path}: 179 verdicts for 180 examples"):
        load_evaluation(tmp_path)
