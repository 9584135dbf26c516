"""Jobs for the model, and what their texts and pictures count."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clients.messages import encode_message
from judging import JudgeRequest
from judging.errors import FieldError
from judging.files.pictures import PictureSize, picture_size
from judging.models.backbones import Backbone, load_backbone
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from judging.types import Message
from serve.calls.limits import Limits
from serve.calls.waiting import Readers
from serve.pictures.received import Decoders
from serve.queue.intake import (
    MOST_SENT_PIXELS,
    CheckedRequest,
    Intake,
    request_tokens,
    text_tokens,
)
from serve.queue.service import WINDOW_BATCHES, WINDOW_TOKENS, Service, window_tokens
from serve.queue.worker import ModelJob
from tests.conftest import HubFolders
from tests.serve.made_up import FakeJudge, picture, progressive, row
from tests.serve.sockets import serving
from tests.tiny import save_picture


def prepared(judge: FakeJudge, *sources: str) -> tuple[str, ...]:
    """The pictures of a job, as the model thread gets them."""

    async def main() -> tuple[str, ...]:
        intake = Intake(30, Readers())
        try:
            request = JudgeRequest.model_validate(row(images=sources))
            sizes = tuple(map(picture_size, sources))
            [job] = await intake.jobs([CheckedRequest(request, "a", judge, sizes)], {"a": len})
            assert isinstance(job, ModelJob)
            assert job.request
            return job.request.images
        finally:
            await intake.close()

    return asyncio.run(main())


@pytest.mark.parametrize("posterior", ["exact", "approximate"])
def test_no_engine_gets_a_picture_as_it_came(posterior: str, small_backbone: Backbone) -> None:
    judge = FakeJudge()
    judge.engine = SimpleNamespace(posterior=posterior)
    judge.backbone = small_backbone
    large = picture((3000, 1500), "webp", color="red")
    images = prepared(judge, large, progressive(700, 50))
    most = small_backbone.pixels.max_pixels if posterior == "exact" else MOST_SENT_PIXELS
    sizes = list(map(picture_size, images))
    assert sizes[0].pixels <= most
    assert sizes[0].width == pytest.approx(2 * sizes[0].height, rel=0.1)
    for image in images:
        assert image.startswith("data:image/png;")


def test_other_programs_get_a_plain_data_url() -> None:
    url = "data:image/png;scaled=1;base64,AAAA"
    [image, _] = encode_message(Message(role="user", text="x", images=(url,)))["content"]
    assert image["image_url"] == {"url": "data:image/png;base64,AAAA"}


@pytest.mark.parametrize(("width", "height"), [(4000, 4000), (16_000_000, 1), (1449, 1449)])
def test_a_shape_is_kept_within_a_limit(width: int, height: int) -> None:
    size = PictureSize(width, height).at_most(MOST_SENT_PIXELS)
    assert size
    assert size.pixels <= MOST_SENT_PIXELS
    assert size.at_most(MOST_SENT_PIXELS) is None


@pytest.fixture(scope="module")
def small_backbone(small: str) -> Backbone:
    from judging.models.backbones import load_backbone

    return load_backbone(small, dtype="float32", device="cpu")


def test_a_refused_call_decodes_no_more_pictures(
    monkeypatch: pytest.MonkeyPatch, small_backbone: Backbone
) -> None:
    decoded: list[str] = []
    turns = asyncio.Semaphore(1)

    async def decode(decoders: Decoders, source: str, size: PictureSize) -> str:
        async with turns:
            await asyncio.sleep(0.05)
            decoded.append(source)
            return "x" * 1_000_000

    monkeypatch.setattr(Decoders, "decode", decode)
    judge = FakeJudge()
    judge.engine, judge.backbone = SimpleNamespace(posterior="exact"), small_backbone
    rows = [row(images=[picture(color=number)]) for number in range(8)]
    with serving(Service({"a": judge}, Limits(held_bytes=500_000))) as client:
        assert client.post("/judge", json=rows).status_code == 429
        time.sleep(0.5)
    assert len(decoded) == 1


FIELDS: dict[str, Any] = {"question": "q" * 400, "references": ["r" * 40], "response": "x"}


@pytest.mark.parametrize(("order", "critiques"), [("both", 2), ("given", 1)])
def test_a_critique_is_counted_in_every_order(order: str, critiques: int) -> None:
    pair = {"task": "truthful-pair", "question": "q", "responses": ["a", "b"], "order": order}
    critique = _tokens(FakeJudge(), **pair, mode="critique", critique_tokens=700)
    assert critique - _tokens(FakeJudge(), **pair) == critiques * 700


def test_texts_count() -> None:
    assert _tokens(FakeJudge(), response="x" * 4001) - _tokens(FakeJudge()) == 1000
    assert text_tokens(["é" * 10, "\ud800"]) == 5


def test_what_stands_between_the_items_of_a_list_counts() -> None:
    judge = FakeJudge()
    texts = [_tokens(judge, references=[""] * number) for number in (1, 100)]
    assert texts[1] - texts[0] >= 100 // 4


def test_a_picture_counts_as_the_judge_sees_it(hub_folders: HubFolders, tmp_path: Path) -> None:
    """A large picture is scaled down to the judge's limit, a small one up to it."""
    backbone = load_backbone(hub_folders("Qwen3-VL-4B-Instruct"), weights=False)
    judge = FakeJudge()
    judge.backbone = backbone.with_pixels(max_pixels=200_000)
    pictures = [
        save_picture(tmp_path / "large.png", 1200, 900),
        save_picture(tmp_path / "small.png", 64, 64),
    ]
    before = _tokens(judge)
    for images in ([pictures[0]], [pictures[1]], pictures):
        request = JudgeRequest.model_validate({**FIELDS, "images": images})
        [prompt] = Encoder(judge.backbone, shows_all_pictures=True).encode(
            [(get_task(request.task), request)]
        )
        seen = sum(t * h * w // 4 for t, h, w in prompt.vision["image_grid_thw"].tolist())
        assert _tokens(judge, images=images) - before == seen


def test_a_picture_that_the_judge_refuses_counts_nothing() -> None:
    judge = FakeJudge()
    narrow = picture((2000, 1))
    judge.backbone = SimpleNamespace(**{**vars(judge.backbone), "num_picture_tokens": refuse})
    assert _tokens(judge, images=[narrow]) == _tokens(judge)


def refuse(size: PictureSize) -> int:
    raise FieldError("images", "too narrow")


def _tokens(judge: FakeJudge, **fields: Any) -> int:
    request = JudgeRequest.model_validate(fields if "task" in fields else {**FIELDS, **fields})
    sizes = tuple(map(picture_size, request.images))
    return request_tokens(CheckedRequest(request, "a", judge, sizes), len)


def test_a_window_suits_the_judge_with_the_largest_budget() -> None:
    small, large = FakeJudge(), FakeJudge()
    assert window_tokens([small]) == WINDOW_TOKENS
    large.engine = SimpleNamespace(posterior="exact", token_budget=1000)
    assert window_tokens([small, large]) == 1000 * WINDOW_BATCHES
