"""The examples for TRL, verl and OpenRLHF, on tiny models."""

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from custos.rewards import CritiqueReward
from judging.judge import Judge
from tests.serve.sockets import serving_judges

EXAMPLES = Path(__file__).parents[2] / "examples"
CRITIQUES = ["Response A is green.", "<critique>B.</critique><label>A</label>"]


def rows(count: int) -> list[dict[str, str]]:
    return [
        {
            "question": f"Which river {number}?",
            "response_a": "green",
            "response_b": "brown",
            "label": "AB"[number % 2],
        }
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def judge(small: str) -> Judge:
    return Judge.load(small, dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def address(judge: Judge) -> Iterator[str]:
    with serving_judges({"pairs": judge}) as url:
        yield url


def _functions(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name))


@pytest.mark.parametrize("service", [False, True], ids=["in-process", "service"])
def test_trl_trains_on_the_reward(
    service: bool, small: str, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "pairs.jsonl"
    data.write_text("\n".join(map(json.dumps, rows(4))), encoding="utf-8")
    source = ["--service", address] if service else ["--judge", small]
    _functions("trl_grpo.py")["main"](
        ["--model", small, "--data", str(data), "--out", str(tmp_path / "out")]
        + [*source, "--steps", "1", "--tokens", "4"]
    )
    assert "rewards/CritiqueReward/mean" in capsys.readouterr().out
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_verl(judge: Judge, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOS_URL", address)
    pairs = [json.dumps(row) for row in rows(2)]
    compute_score = _functions("verl_reward.py")["compute_score"]
    scores = compute_score(
        data_sources=["pairs"] * 2,
        solution_strs=CRITIQUES,
        ground_truths=pairs,
        extra_infos=[None, None],
    )
    assert scores == pytest.approx(CritiqueReward(judge).rewards(pairs, CRITIQUES), abs=1e-5)


def test_openrlhf(judge: Judge, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOS_URL", address)
    pairs, prompts = [json.dumps(row) for row in rows(2)], ["Say why. ", "Why? "]
    queries = [prompt + critique for prompt, critique in zip(prompts, CRITIQUES, strict=True)]
    result = _functions("openrlhf_reward.py")["reward_func"](queries, prompts, pairs)
    expected = CritiqueReward(judge).scores(pairs, CRITIQUES)
    assert result["rewards"].tolist() == pytest.approx(
        [score.reward for score in expected if score], abs=1e-5
    )
    assert result["extra_logs"]["flips"].tolist() == [score.flips for score in expected if score]
    assert ((result["scores"] > 0) & (result["scores"] < 1)).all()
