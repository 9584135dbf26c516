"""The first hour on a GPU, rehearsed: figures are kept, a step goes on, a killed one ends whole."""

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from data_prep.made.quick_scores import generate_examples
from experiments.gpu_hour import machine
from experiments.gpu_hour.figures import PEAK_TFLOPS, Book, Figure, Hour, Machine
from experiments.gpu_hour.gpu_hour import main, measure_part, run_within
from experiments.gpu_hour.grading import RANDOM
from experiments.gpu_hour.trl_steps import Trained, run_steps
from judging import CustosError
from judging.files.kept_work import locked
from judging.files.records import write_records

HERE = Machine.here(rehearsal=True)


@pytest.fixture
def hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hour:
    monkeypatch.setenv("CUSTOS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CUSTOS_REAL_TOKENIZER", str(tmp_path / "none"))
    return Hour(Book(tmp_path / "figures.json", HERE), tmp_path, ())


def content(file: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize(
    ("value", "target", "ok"),
    [
        *((2.9, "< 3", True), (3.0, "< 3", False), (1e-5, "< 1e-4", True), (1e-3, "< 1e-4", False)),
        *((12_000.0, ">= 12,000", True), (11_999.0, ">= 12,000", False), (0.9, "", None)),
        *((0.9, "0.85 to 1.15", True), (1.2, "0.85 to 1.15", False), ("absent", "< 3", None)),
    ],
)
def test_a_target_is_met_or_missed(value: float | str, target: str, ok: bool | None) -> None:
    assert Figure("speed", value, "", target).ok is ok


def test_a_peak_is_that_of_the_named_device() -> None:
    names = ("NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA L40", "NVIDIA L40S", "Tesla T4")
    peaks = [Machine(name, "580", rehearsal=False).peak_tflops for name in names]
    assert peaks == [PEAK_TFLOPS[k] for k in ("H100", "H100 PCIe", "L40", "L40S")] + [None]
    assert Machine(names[0], "580", rehearsal=False).slug == "nvidia-h100-80gb-hbm3"


def test_figures_of_a_gpu_are_judged_and_those_of_a_rehearsal_are_not(tmp_path: Path) -> None:
    figure = Figure("speed", 1.0, "tokens/s", ">= 2")
    for number, on in enumerate((HERE, Machine("NVIDIA H200", "580.1", rehearsal=False))):
        book = Book(tmp_path / f"{number}.json", on)
        book.add(4, "train", figure, time.monotonic())
        [entry] = content(book.path)["figures"]
        assert entry["ok"] is (None if number == 0 else False)
        assert entry["driver"] == on.driver and "torch" in entry["versions"]
    with pytest.raises(CustosError, match="1.json"):
        Book(tmp_path / "1.json", HERE)


def test_every_file_of_tests_for_a_gpu_is_a_part() -> None:
    of_steps, others = (machine.files_of_tests(step) for step in (2, 3))
    assert "tests/losses/test_cuda.py" in of_steps
    assert others and not set(others) & set(of_steps)
    marked = {
        str(file.relative_to(machine.ROOT))
        for file in (machine.ROOT / "tests").rglob("test_*.py")
        if re.search(r"ON_GPU,?$|^    pytest\.mark\.cuda,", file.read_text("utf-8"), re.M)
    }
    assert marked <= {*of_steps, *others}


def test_quick_parts_give_their_figures(hour: Hour) -> None:
    for step, part in ((1, "machine"), (1, "attention"), (6, "critiques")):
        measure_part(hour, step, part)
    value = hour.book.number
    assert content(hour.book.path)["done"] == [[1, "machine"], [1, "attention"], [6, "critiques"]]
    assert (value("attention", "cuDNN off: new shape") or 0) > 0
    assert value("critiques", "tokens drawn") == 32
    by_name = {figure["measurement"]: figure["value"] for figure in hour.book.figures}
    assert by_name["tokenizer of random weights"] == "made"
    assert "scaled_dot_product" in by_name["cuDNN on: kernels"]


def test_a_step_goes_on_with_what_has_not_ended(hour: Hour) -> None:
    hour.book.add(1, "machine", Figure("device", "kept"), time.monotonic())
    hour.book.add(1, "attention", Figure("not finished", "killed"), time.monotonic())
    hour.book.done.append([1, "machine"])
    hour.book.write()
    options = ["--out", str(hour.book.path), "--folder", str(hour.folder)]
    main(["1", "--rehearse", *options])
    figures = content(hour.book.path)["figures"]
    assert [f["value"] for f in figures if f["part"] == "machine"] == ["kept"]
    assert {f["measurement"] for f in figures if f["part"] == "attention"} > {"cuDNN on: kernels"}
    assert content(hour.book.path)["done"] == [[1, "machine"], [1, "attention"]]


def test_a_step_whose_time_ends_is_killed_and_says_so(
    hour: Hour, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--out", str(hour.book.path), "--folder", str(hour.folder)]
    with pytest.raises(SystemExit) as ended:
        main(["6", "--rehearse", "--minutes", "0.01", *options])
    assert ended.value.code == 1
    [figure] = content(hour.book.path)["figures"]
    assert (figure["part"], figure["measurement"], figure["ok"]) == (
        *("critiques", "not finished"),
        False,
    )
    assert "no time for pictures, 4 bits, killed" in capsys.readouterr().out


def test_what_a_killed_part_started_ends_with_it(tmp_path: Path) -> None:
    code = (
        "import pathlib, subprocess, sys, time;"
        "child = subprocess.Popen(['sleep', '60']);"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid));"
        "time.sleep(60)"
    )
    file = tmp_path / "child"
    assert run_within([sys.executable, "-c", code, str(file)], 2)
    stat = Path(f"/proc/{file.read_text()}/stat")
    for _ in range(100):  # it may not have been reaped
        if not stat.exists() or "Z" in stat.read_text().split()[2]:
            return
        time.sleep(0.02)
    pytest.fail(f"{stat} is still there")


def test_a_damaged_file_of_figures_stays(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    file.write_text('{"device": "')
    with pytest.raises(CustosError, match=r"figures\.json"):
        Book(file, HERE)
    assert file.read_text() == '{"device": "'


def test_two_at_once_would_measure_each_other(hour: Hour, tmp_path: Path) -> None:
    options = ["1", "--rehearse"]
    for held in (hour.book.path, tmp_path / "runs"):
        with locked(held), pytest.raises(CustosError, match=held.name):
            main([*options, "--out", str(hour.book.path), "--folder", str(tmp_path / "runs")])


def test_vllm_reads_the_same_rows_in_an_environment_of_its_own(
    hour: Hour, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, program = hour.folder / "python", hour.folder / "stand_in.py"
    program.write_text(
        "import json, sys\n"
        "job = json.load(open(sys.argv[1]))\n"
        "assert json.load(open(job['model'] + '/config.json')) and job['dtype'] == 'bfloat16'\n"
        "tokens = [job['tokens'][0]] * len(job['prompts'])\n"
        "json.dump({'seconds': 4.0, 'tokens': tokens}, open(sys.argv[2], 'w'))\n"
    )
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {program} "$3" "$4"\n')
    python.chmod(0o755)
    monkeypatch.setattr("experiments.gpu_hour.grading.VLLM", python)
    hour.book.add(5, f"offline: {RANDOM}", Figure("rows", 16.0), time.monotonic())
    measure_part(hour, 5, f"vLLM: {RANDOM}")
    assert hour.book.number(f"vLLM: {RANDOM}", "rows") == 8
    assert hour.book.number(f"vLLM: {RANDOM}", "custos over vLLM") == 2


@pytest.mark.slow
def test_steps_of_trl_are_timed(tmp_path: Path) -> None:
    write_records(tmp_path / "rows.jsonl", generate_examples(24, 0, "train", "open"))
    trained = Trained("embedded@1", 16, 32, 0.0, checkpointing=False)
    report = run_steps(tmp_path / "rows.jsonl", trained, steps=3, warm=1, batch=8)
    assert report["rows_per_second"] > 0 and report["peak_mib"] > 0
