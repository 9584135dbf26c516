"""Verdicts that are kept."""

import asyncio
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from judging import CustosError, JudgeRequest, Verdict
from serve.errors import ApiError
from serve.queue.service import Service
from serve.queue.verdict_cache import FILE, VerdictCache, cache_key
from tests.serve.made_up import FakeJudge, picture, row


def request(response: str = "Paris", **fields: object) -> JudgeRequest:
    return JudgeRequest.model_validate(row(response, **fields))


def test_what_a_verdict_depends_on_is_in_the_key() -> None:
    judge = FakeJudge()
    same = [
        request(),
        request(id="7"),
        request(metadata={"answerer": "x"}),
        request(task="hieval-qs", variant="plain"),
    ]
    assert len({cache_key(judge, each) for each in same}) == 1
    different = [
        request(),
        request(question="What is the capital of Italy?"),
        request(references=["Rome"]),
        request(reference_mode="any"),
        request(response="Rome"),
        request(choices=["Paris"]),
        request(criteria=["short"]),
        request(variant="tolerance"),
        request(seed=1),
        request(images=[picture(color="red")]),
        request(images=[picture(color="blue")]),
    ]
    keys = {cache_key(judge, each) for each in different}
    keys.add(cache_key(FakeJudge("other"), request()))
    assert len(keys) == len(different) + 1


def test_critiques_without_a_seed_are_not_kept() -> None:
    judge = FakeJudge(tasks=("truthful-pair",))
    pair = {"task": "truthful-pair", "question": "q", "responses": ["a", "b"]}
    critique = {**pair, "mode": "critique"}
    assert cache_key(judge, JudgeRequest.model_validate(pair)) is not None
    assert cache_key(judge, JudgeRequest.model_validate(critique)) is None
    with_seed = cache_key(judge, JudgeRequest.model_validate({**critique, "seed": 0}))
    assert with_seed is not None
    assert with_seed != cache_key(judge, JudgeRequest.model_validate({**pair, "seed": 0}))
    longer = {**critique, "seed": 0, "critique_tokens": 700}
    assert with_seed != cache_key(judge, JudgeRequest.model_validate(longer))


def test_the_same_question_is_graded_once_also_after_a_restart(tmp_path: Path) -> None:
    judge = FakeJudge()

    async def ask() -> tuple[list[Verdict], int]:
        service = Service({"a": judge}, cache=VerdictCache(tmp_path, 1_000_000))
        first = await service.grade([request(id="1"), request("Rome", id="2")], ["a", "a"])
        again = await service.grade([request("Rome", id="3")], ["a"])
        service.close()
        return [*first, *again], service.queue().counters["cached"]

    verdicts, num_cached = asyncio.run(ask())
    assert [(v.id, v.label) for v in verdicts] == [("1", "Correct"), ("2", "Wrong"), ("3", "Wrong")]
    assert verdicts[2] == verdicts[1].model_copy(update={"id": "3"})
    assert (num_cached, judge.batches) == (1, [["1", "2"]])
    verdicts, num_cached = asyncio.run(ask())
    assert [v.label for v in verdicts] == ["Correct", "Wrong", "Wrong"]
    assert (num_cached, judge.batches) == (3, [["1", "2"]])


def test_a_kept_verdict_names_the_judge_as_it_is_called_now(tmp_path: Path) -> None:
    async def ask(name: str) -> Verdict:
        service = Service({name: FakeJudge()}, cache=VerdictCache(tmp_path, 1_000_000))
        (verdict,) = await service.grade([request()], [name])
        service.close()
        return verdict

    assert [asyncio.run(ask(name)).judge_name for name in ("strict", "new")] == ["strict", "new"]


def test_faults_are_not_kept(tmp_path: Path) -> None:
    judge = FakeJudge()

    async def ask() -> None:
        service = Service({"a": judge}, cache=VerdictCache(tmp_path, 1_000_000))
        for _ in range(2):
            (verdict,) = await service.grade([request("break")], ["a"])
            assert verdict.status == "judge_error"
        service.close()

    asyncio.run(ask())
    assert len(judge.batches) == 2


def test_what_was_graded_beside_a_server_that_is_down_is_kept(tmp_path: Path) -> None:
    class Unreachable(FakeJudge):
        def grade(self, *given: Any, **options: Any) -> Iterator[Verdict]:
            raise CustosError("the server answered 503")

    judge = FakeJudge()

    async def ask() -> int:
        judges = {"a": judge, "b": Unreachable("b")}
        service = Service(judges, cache=VerdictCache(tmp_path, 1_000_000))
        with pytest.raises(ApiError, match="the model's server fails"):
            await service.grade([request(), request()], ["a", "b"])
        service.close()  # writes what waits
        service = Service(judges, cache=VerdictCache(tmp_path, 1_000_000))
        await service.grade([request()], ["a"])
        service.close()
        return service.queue().counters["cached"]

    assert asyncio.run(ask()) == 1
    assert len(judge.batches) == 1


def verdict(number: int) -> Verdict:
    return Verdict(status="scored", label="Correct", message="x" * 500 + str(number))


def key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_the_file_stays_within_its_bound_and_keeps_what_is_used(tmp_path: Path) -> None:
    bound = 200_000
    cache = VerdictCache(tmp_path, bound)
    cache.put({key(0): verdict(0)})
    for start in range(1, 2001, 50):
        cache.put({key(i): verdict(i) for i in range(start, start + 50)}, used=[key(0)])
        assert cache.get([key(0)]) == {key(0): verdict(0)}
        assert cache.num_bytes <= bound
    assert cache.get([key(2000)])
    assert not cache.get([key(1)])
    cache.close()
    assert (tmp_path / FILE).stat().st_size <= 1.5 * bound


def test_a_damaged_file_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 100)
    with pytest.raises(CustosError, match="cannot be opened"):
        VerdictCache(tmp_path, 1_000_000)


def test_a_failing_disk_costs_no_answer(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path, 1_000_000)
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("DROP TABLE verdicts")

    async def ask() -> Verdict:
        service = Service({"a": FakeJudge()}, cache=cache)
        (answer,) = await service.grade([request()], ["a"])
        service.close()
        return answer

    assert asyncio.run(ask()).label == "Correct"
