"""Pictures that other processes decode, and what the model sees of them."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from judging import JudgeRequest
from judging.errors import FieldError
from judging.files.pictures import PictureSize, picture_size, read_image
from judging.models.backbones import Backbone
from judging.scoring.prompts import Encoder
from judging.tasks import get_task
from serve.calls.context import AccessKey, access_key
from serve.pictures import decode
from serve.pictures.received import Decoders
from tests.serve.made_up import picture, row


def drawing(width: int, height: int, kind: str, mode: str = "RGB") -> str:
    """A picture of noise, in which every pixel counts."""
    draws = np.random.default_rng(width).integers(0, 256, (height, width, 4), dtype=np.uint8)
    file = io.BytesIO()
    image = Image.fromarray(draws).convert(mode)
    image.save(file, kind, **({"lossless": True} if kind == "webp" else {}))
    return f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"


def decode_all(
    sources: list[str], sizes: list[PictureSize | None], seconds: float = 30
) -> list[str]:
    async def main() -> list[str]:
        decoders = Decoders(seconds, num_processes=2)
        try:
            return await asyncio.gather(*map(decoders.decode, sources, sizes))
        finally:
            await decoders.close()

    return asyncio.run(main())


def test_the_model_sees_what_it_saw_without_other_processes(tiny: Backbone) -> None:
    """Pictures above the limit, below it, of other modes and formats, and one too narrow."""
    backbone = tiny.with_pixels(max_pixels=200_000)
    sources = [
        drawing(900, 700, "png"),
        drawing(800, 611, "jpeg"),
        drawing(1000, 300, "webp", "RGBA"),
        drawing(300, 200, "png", "P"),
        drawing(90, 60, "png", "LA"),
        drawing(401, 490, "png", "L"),
        drawing(9000, 56, "png"),
        drawing(320, 200, "gif"),
        drawing(640, 480, "bmp"),
    ]
    sizes = [backbone.scaled_size(picture_size(source)) for source in sources]
    assert [size is not None for size in sizes[:6]] == [True, True, True, False, False, False]
    smaller = decode_all(sources, sizes)
    encoder, task = Encoder(backbone, shows_all_pictures=True), get_task("hieval-qs")
    for before, after, size in zip(sources, smaller, sizes, strict=True):
        given, prepared = encoder.encode(
            [(task, JudgeRequest.model_validate(row(images=[url]))) for url in (before, after)]
        )
        assert given.suffix_ids == prepared.suffix_ids
        assert given.scaled_pictures == prepared.scaled_pictures
        assert picture_size(after) == (size or picture_size(before))
        torch.testing.assert_close(
            given.vision["pixel_values"], prepared.vision["pixel_values"], rtol=0, atol=0
        )


@pytest.mark.parametrize("mode", ["I;16", "RGBA", "LA", "CMYK"])
def test_pictures_are_decoded_as_elsewhere(mode: str) -> None:
    """At the size of the largest that the service takes."""
    file = io.BytesIO()
    kind = "jpeg" if mode == "CMYK" else "png"
    color: Any = {"I;16": 30_000, "LA": (9, 90)}.get(mode, (9, 99, 0, 90))
    Image.new(mode, (4000, 4000), color).save(file, kind)
    source = f"data:image/{kind};base64,{base64.b64encode(file.getvalue()).decode()}"
    [decoded] = decode_all([source], [None])
    assert read_image(decoded).getpixel((0, 0)) == read_image(source).getpixel((0, 0))


def test_what_cannot_be_decoded_stops_nothing() -> None:
    async def main() -> None:
        decoders = Decoders(30, num_processes=1)
        broken = picture().replace("A", "B", 9)
        tiff = picture(kind="tiff")
        for bad in (broken, tiff, "data:image/png;base64,?"):
            with pytest.raises(FieldError, match="not a readable picture"):
                await decoders.decode(bad, None)
        large = await decoders.decode(picture((30, 20), color="red"), None)
        assert read_image(large).getpixel((29, 19)) == (255, 0, 0)
        await decoders.close()

    asyncio.run(main())


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds processes there")
def test_a_process_that_ended_while_idle_is_no_fault_of_the_next_picture() -> None:
    """End an idle decoder, as the system does when memory is short."""

    async def main() -> None:
        decoders = Decoders(30, num_processes=1)
        await decoders.decode(picture(), None)
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and _is_decoder(folder, os.getpid()):
                os.kill(int(folder.name), signal.SIGKILL)
        await asyncio.sleep(0.5)
        await decoders.decode(picture(), None)
        await decoders.close()

    asyncio.run(main())


def test_the_pictures_of_one_key_leave_a_process_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop the one process that a key may have, as its large pictures do for seconds."""
    monkeypatch.setattr("serve.pictures.received.num_cores", lambda: 2)

    async def main() -> None:
        decoders = Decoders(60)
        access_key.set(AccessKey("alice", b""))
        await decoders.decode(picture(), None)
        for process in decoders._processes:
            process.send_signal(signal.SIGSTOP)
        waiting = [asyncio.create_task(decoders.decode(picture(), None)) for _ in range(4)]
        await asyncio.sleep(0)
        access_key.set(AccessKey("bob", b""))
        await asyncio.wait_for(decoders.decode(picture(), None), 30)
        assert not any(task.done() for task in waiting)
        for process in decoders._processes:
            process.send_signal(signal.SIGCONT)
        await asyncio.gather(*waiting)
        await decoders.close()

    asyncio.run(main())


def test_memory_is_limited() -> None:
    """A picture of 1.4 GB, which the service refuses by its header, is no picture here."""
    file = io.BytesIO()
    Image.new("P", (13_000, 13_000)).save(file, "PNG", transparency=0, compress_level=1)
    bomb = f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"
    with pytest.raises(FieldError, match="not a readable picture"):
        decode_all([bomb], [None])


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_to_all_processes_lets_pictures_of_accepted_calls_be_decoded(name: str) -> None:
    """Ctrl-C goes to all processes of the terminal, systemd's SIGTERM to all of the service."""
    program = f"""
import asyncio, os, signal, time
from serve.pictures.received import Decoders

async def main():
    decoders = Decoders(30, num_processes=1)
    await decoders.decode({picture()!r}, None)
    os.killpg(0, signal.{name})
    time.sleep(0.5)
    await decoders.decode({picture()!r}, None)
    await decoders.close()

signal.signal(signal.{name}, lambda *_: None)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, start_new_session=True, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads the environment of a process")
def test_the_processes_get_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUSTOS_API_KEYS", "a-key-of-many-characters")

    async def main() -> list[bytes]:
        decoders = Decoders(30)
        await decoders.decode(picture(), None)
        environments = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdecimal() and _is_decoder(folder, os.getpid()):
                environments.append((folder / "environ").read_bytes())
        await decoders.close()
        return environments

    environments = asyncio.run(main())
    assert environments
    assert not any(b"CUSTOS_API_KEYS" in environment for environment in environments)


def _is_decoder(process: Path, parent: int) -> bool:
    try:
        command = (process / "cmdline").read_text()
        status = (process / "status").read_text()
    except OSError:
        return False
    return decode.__file__ in command and re.search(rf"PPid:\s*{parent}\b", status) is not None


def test_a_picture_whose_process_is_killed_is_tried_once_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the system does when memory is short; a picture that kills two is not readable."""

    async def decoded(num_killed: int) -> str:
        decoders = Decoders(30, num_processes=1)
        await decoders.decode(picture(), None)  # so that one is idle
        left = num_killed
        pack = decode.QUESTION.pack

        def kill_and_pack(*question: int) -> bytes:
            nonlocal left
            if left:
                left -= 1
                for process in decoders._processes:
                    if process.returncode is None:
                        process.kill()
            return pack(*question)

        monkeypatch.setattr(decode, "QUESTION", SimpleNamespace(pack=kill_and_pack))
        try:
            return await decoders.decode(picture(), None)
        finally:
            monkeypatch.undo()
            await decoders.close()

    assert asyncio.run(decoded(1)).startswith("data:image/png")
    with pytest.raises(FieldError):
        asyncio.run(decoded(2))
