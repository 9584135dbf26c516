"""Replies in JSON, read by a schema."""

import pytest

from data_prep.construction.steps.base import (
    CUT_OFF,
    NOT_JSON,
    OTHER_SCHEMA,
    STEPS,
    StepReply,
    read_reply,
)
from data_prep.errors import UnusableText
from tests.data_prep.construction.made_up import reply


class Answer(StepReply):
    value: int
    note: str = ""


@pytest.mark.parametrize(
    "text",
    [
        '{"value": 3}',
        '```json\n{"value": 3}\n```',
        'Here it is: {"value": 3}. I hope that helps.',
        '<think>maybe {"value": 4}</think>\n{"value": 3}',
    ],
)
def test_the_object_is_found_in_what_stands_around_it(text: str) -> None:
    assert read_reply(reply(text), Answer) == Answer(value=3)


@pytest.mark.parametrize(
    ("text", "reason", "detail"),
    [
        ("", NOT_JSON, "there is no JSON object"),
        ('{"value": 3', NOT_JSON, "there is no JSON object"),
        ('{"value": }', NOT_JSON, "not valid JSON"),
        ('{"value": "many"}', OTHER_SCHEMA, "field 'value'"),
        ('{"note": "x"}', OTHER_SCHEMA, "field 'value': Field required"),
        ('{"value": 3, "price": 1}', OTHER_SCHEMA, "field 'price': unknown field"),
    ],
)
def test_other_replies_can_be_mended(text: str, reason: str, detail: str) -> None:
    with pytest.raises(UnusableText, match=detail) as error:
        read_reply(reply(text), Answer)
    assert (error.value.reason, error.value.mendable) == (reason, True)


def test_a_reply_at_the_limit_is_not_asked_for_again() -> None:
    with pytest.raises(UnusableText, match="token limit") as error:
        read_reply(reply('{"value": 3}', "length"), Answer)
    assert (error.value.reason, error.value.mendable) == (CUT_OFF, False)


def test_every_step_sends_its_schema_and_keeps_unknown_fields() -> None:
    assert len(STEPS.names()) >= 8
    for step in STEPS:
        assert step.name.split("-")[0] in ("charthal", "simplevqa", "truthfulvqa")
        schema = step.reply_type.model_json_schema()
        assert schema["additionalProperties"] is False
        row = step.row_type.model_construct(id="1", source="web")
        assert row.with_fields(more=1) == {"id": "1", "source": "web", "more": 1}
