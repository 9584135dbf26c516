from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clients.messages import one_user_turn
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
