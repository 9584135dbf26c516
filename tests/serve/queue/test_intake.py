"""Pictures as the model thread gets them, whatever engine it has."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from clients.messages import encode_message
from judging import JudgeRequest
from judging.files.pictures import PictureSize, picture_size
from judging.messages import Message
from judging.models.backbones import Backbone
from serve.limits import Limits
from serve.pictures.decoders import Decoders
from serve.queue.intake import MOST_SENT_PIXELS, Asked, Intake
from serve.queue.service import Service
from serve.queue.worker import ModelJob
from serve.threads import Readers
from tests.serve.made_up import FakeJudge, picture, progressive, row
from tests.serve.sockets import serving


def prepared(judge: FakeJudge, *sources: str) -> tuple[str, ...]:
    """The pictures of a job, as the model thread gets them."""

    async def main() -> tuple[str, ...]:
        intake = Intake(30, Readers())
        try:
            request = JudgeRequest.model_validate(row(images=sources))
            [job] = await intake.jobs([Asked(request, "a", judge, len)])
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
