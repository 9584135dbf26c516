"""Every program by its name, and every known error on one line."""

from importlib import import_module
from pathlib import Path

import pytest

from experiments.__main__ import PROGRAMS, main


def test_every_program_has_a_command_line() -> None:
    texts = {file.stem: file.read_text("utf-8") for file in Path("experiments").glob("*/*.py")}
    assert set(PROGRAMS) == {name for name in texts if f"experiments {name} " in texts[name]}
    for name, room in PROGRAMS.items():
        module = import_module(f"experiments.{room}.{name}")
        assert f"python -m experiments {name}" in (module.__doc__ or ""), name
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0


def test_an_unknown_name_lists_the_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert "  service_load\n" in capsys.readouterr().err


def test_a_known_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--in", str(tmp_path / "rows.jsonl"), "--json", str(tmp_path / "load.json")]
    assert main(["service_load", *files]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'rows.jsonl'}: no such file\n"
