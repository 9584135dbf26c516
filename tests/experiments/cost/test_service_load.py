"""What measures cost: loads of a service, and speeds of scoring."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from experiments.cost.load_generator import CONNECTION_FAILED, closed_loop, open_loop
from experiments.cost.scoring_speed import compare_speed, export_llama
from experiments.cost.service_load import measure, read_requests
from judging import JudgeRequest
from judging.judge import Judge
from serve.calls.limits import Limits
from serve.queue.service import Service
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import serving
from tests.tiny import reference_model

BODY = b'{"question": "q", "references": ["Paris"], "response": "Paris"}'


def test_closed_loop_sends_each_body_once_and_keeps_its_clients_busy() -> None:
    judge = FakeJudge(pause_s=0.01)
    with serving(Service({"a": judge})) as client:
        load = asyncio.run(closed_loop(str(client.base_url), [BODY] * 40, clients=8))
    report = load.report()
    assert report["statuses"] == {"200": 40}
    assert sum(map(len, judge.batches)) == 40
    assert max(map(len, judge.batches)) <= 8
    assert load.seconds >= 0.4
    assert load.rows_per_second == pytest.approx(40 / load.seconds)
    assert 10 <= report["p50_ms"] <= report["p95_ms"] <= report["p99_ms"]


def test_open_loop_keeps_its_rate_and_every_call_is_answered() -> None:
    judge = FakeJudge(pause_s=0.1)
    service = Service({"a": judge}, Limits(queue_requests=10))
    with serving(service) as client:
        start = time.perf_counter()
        load = asyncio.run(open_loop(str(client.base_url), [BODY], rate=200, seconds=1))
        assert time.perf_counter() - start < 60
    statuses = load.report()["statuses"]
    assert sum(statuses.values()) == 200
    assert set(statuses) == {"200", "429"}
    assert statuses["429"] > 50
    counters = service.queue().counters
    assert (counters["answered"], counters["rejected"]) == (statuses["200"], statuses["429"])


def test_rows_that_are_no_requests_are_left_out(tmp_path: Path) -> None:
    rows = [row("Paris"), {"question": "q"}, row("Rome") | {"task": "nothing"}, row("Bonn")]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    assert [request.response for request in read_requests(path)] == ["Paris", "Bonn"]


@pytest.mark.slow
@pytest.mark.parametrize("rows_per_call", [1, 8])
def test_the_whole_measurement(tiny_folder: str, rows_per_call: int) -> None:
    requests = [JudgeRequest.model_validate(row(f"Paris {number}")) for number in range(64)]
    lines: list[str] = []
    report = measure(
        tiny_folder,
        requests,
        clients=8,
        rows_per_call=rows_per_call,
        overload_seconds=2,
        plain_rows=16,
        show=lines.append,
    )
    assert report["service"]["statuses"] == {"200": 64 // rows_per_call}
    assert report["plain"]["statuses"] == {"200": 16}
    # One address may open so many connections: those beyond are told so, or ended at once.
    refused = {"429", "503", "504", str(CONNECTION_FAILED)}
    assert set(report["overload"]["statuses"]) <= {"200", *refused}
    assert [line.partition(":")[0] for line in lines] == [
        "offline",
        f"offline, {8 * rows_per_call} rows at once",
        "service, 8 clients",
        "service at 5 times that",
        "offline again",
        "plain app, 8 clients",
    ]


@pytest.fixture
def bias_free(tiny_folders: Any) -> Any:
    """A tiny Qwen2.5-VL whose attention biases are zero, as a grafted backbone's are."""
    model = reference_model(tiny_folders("qwen2_5_vl"), "sdpa")
    with torch.no_grad():
        for name, parameter in model.model.language_model.named_parameters():
            if name.endswith(".bias"):
                parameter.zero_()
    model.lm_head.weight = model.model.language_model.embed_tokens.weight
    return model


def test_the_exported_llama_gives_the_same_text_logits(
    bias_free: Any, tiny: Any, tmp_path: Path
) -> None:
    export_llama(bias_free, tiny.tokenizer, tmp_path)
    llama = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    ids = torch.randint(0, 100, (2, 17), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        torch.testing.assert_close(llama(ids).logits, bias_free(ids).logits, atol=1e-5, rtol=0)


def test_attention_biases_are_refused(bias_free: Any, tiny: Any, tmp_path: Path) -> None:
    with torch.no_grad():
        bias_free.model.language_model.layers[0].self_attn.q_proj.bias[0] = 0.5
    with pytest.raises(ValueError, match="has attention biases"):
        export_llama(bias_free, tiny.tokenizer, tmp_path)


@pytest.mark.slow
def test_all_methods_agree_where_the_judge_is_sure() -> None:
    judge = Judge.load("embedded", dtype="float32")
    rows = [
        JudgeRequest(
            question=f"What is {a} plus {a}?",
            references=(str(2 * a),),
            reference_mode="any",
            responses=(f"The sum is {2 * a + a % 2}.",),
        )
        for a in range(24)
    ]
    result = compare_speed(judge, rows[:16], rows[16:], rounds=1, vllm_python=None)
    batched = [d for d in result["disagreements"] if d["method"] == "plain batches of 16"]
    # An untrained backbone may generate something else than a label; batches only compare labels.
    assert all(d["gap_nats"] < 0.1 for d in batched)
