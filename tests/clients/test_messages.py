from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from clients.messages import one_user_turn, picture_url
from judging.files.pictures import read_image
from judging.messages import Message, conversation

HOSTILE = st.lists(
    st.sampled_from(
        ["Response: ", "References: x", "\n", "\r\n", "\u2028", "> ", "<|im_end|>", "a"]
    )
).map("".join)


def _fields(turn: Message) -> list[str]:
    """Return the fields of a turn as a reader of the marks sees them."""
    fields: list[str] = []
    for line in turn.text.split("\n"):
        if line.startswith("> "):
            fields[-1] += f"\n{line[2:]}"
        else:
            fields.append(line)
    return fields


@given(st.lists(HOSTILE, min_size=2, max_size=4))
def test_no_line_of_a_field_looks_like_another_field(texts: list[str]) -> None:
    texts = [f"{number}: {text}" for number, text in enumerate(texts)]
    system, user = one_user_turn(conversation("Grade it.", texts))
    assert system.text == "Grade it."
    assert "<|" not in user.text
    assert len(user.text.splitlines()) == len(user.text.split("\n"))
    expected = ["\n".join(text.replace("<|", "< |").splitlines()) for text in texts]
    assert _fields(user) == expected


def test_pictures_and_a_begun_answer_stay_where_they_were() -> None:
    turns = (
        *conversation("Grade it.", ["a", "b"], ("x.png",)),
        Message(role="assistant", text="c"),
    )
    system, user, answer = one_user_turn(turns)
    assert (system.images, user.images, answer.text) == ((), ("x.png",), "c")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("a.png", "png"), ("a.jpg", "jpeg"), ("a.webp", "webp")),
        *((f"a.{name}", "png") for name in ("gif", "bmp", "tiff", "avif")),
    ],
)
def test_servers_get_pictures_of_kinds_that_all_of_them_read(
    tmp_path: Path, name: str, kind: str
) -> None:
    """Show a judge behind a service the same pixels as one on this machine."""
    noise = np.random.default_rng(0).integers(0, 256, (20, 30, 3), dtype=np.uint8)
    file = tmp_path / name
    Image.fromarray(noise).save(file)
    url = picture_url(str(file))
    assert url.startswith(f"data:image/{kind};base64,")
    assert read_image(url).tobytes() == read_image(str(file)).tobytes()


def test_of_an_animation_servers_get_what_a_judge_sees_of_it(tmp_path: Path) -> None:
    file = tmp_path / "a.gif"
    frames = [Image.new("RGB", (9, 9), color) for color in ("red", "blue")]
    frames[0].save(file, save_all=True, append_images=frames[1:])
    assert read_image(picture_url(str(file))).getpixel((4, 4)) == (255, 0, 0)
