"""Every program by its name, every known error on one line, and a soak's own figures."""

import asyncio
import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import psutil
import pytest

from experiments.__main__ import PROGRAMS, main
from experiments.service import soak
from experiments.service.soak import Soak, Tally, attacks, over_time
from serve.calls.limits import Limits
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge
from tests.serve.sockets import known, serving


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
    assert "  soak\n" in capsys.readouterr().err


def test_a_known_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--in", str(tmp_path / "rows.jsonl"), "--json", str(tmp_path / "load.json")]
    assert main(["service_load", *files]) == 2
    assert capsys.readouterr().err == f"error: {tmp_path / 'rows.jsonl'}: no such file\n"


TASKS = ("hieval-qs", "hieval-ea")
KEYS = {name: name * 16 for name in ("good", "hostile-1", "hostile-2")}


def test_times_and_errors_by_hand() -> None:
    tally = Tally([i / 1000 for i in range(1, 101)], ["/judge: 500"])
    assert tally.figures() == {"calls": 101, "errors": 1, "p50_ms": 50.0, "p99_ms": 99.0}
    assert Tally().figures() == {"calls": 0, "errors": 0, "p50_ms": None, "p99_ms": None}
    thirds = over_time([1.0, 1.0, 2.0, 2.0, 9.0, 3.0])
    assert list(thirds.values()) == [1.0, 2.0, 6.0, 9.0]


def test_every_call_of_the_good_key_is_answered_as_it_expects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the shape of a whole soak, of which attacks that take long are left out."""
    short = [each for each in attacks() if len(each.body) < 300_000 and not each.leaves_after_s]
    monkeypatch.setattr(soak, "attacks", lambda: short)
    monkeypatch.setattr(soak, "GOOD_SHARE", 1.0)
    (tmp_path / soak.LOG).touch()
    service = Service({"judge": FakeJudge(tasks=TASKS)})
    with serving(service, known(*KEYS.values())) as client:
        run = Soak(str(client.base_url), KEYS, psutil.Process(os.getpid()), tmp_path)
        asyncio.run(run.run(2.0, clients=1, attackers=1, every=0.5))
    summary = run.summary()
    assert summary["good_key"]["idle"]["calls"] and summary["good_key"]["attacked"]["calls"]
    assert not summary["faults"]
    assert summary["p99_ratio"] > 0 and summary["figures"]["memory_mb"]["highest"] > 10
    assert len((tmp_path / soak.SAMPLES).read_text("ascii").splitlines()) == len(run.samples) > 2
    assert summary["attacks"]


def test_attacks_end_as_documented() -> None:
    service = Service({"judge": FakeJudge(tasks=TASKS)}, Limits(body_seconds=1))
    with serving(service, known(*KEYS.values())) as client:
        url = str(client.base_url)
        for attack in attacks():
            if attack.leaves_after_s:
                attack = replace(attack, leaves_after_s=0.05)
            outcome = asyncio.run(attack.send(url, KEYS["hostile-1"]))
            expected = {"200", "408", "413", "422", "429", "cut off"}
            assert outcome in ({"left"} if attack.leaves_after_s else expected), attack.name
