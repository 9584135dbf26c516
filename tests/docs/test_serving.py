"""The page on serving shows an error as the service answers it, and explains every status."""

import json
import re

from fastapi.testclient import TestClient

from serve.app import ERRORS, create_app
from serve.queue.service import Service
from tests.docs.markdown_pages import DOCS, blocks
from tests.serve.made_up import FakeJudge, row

PAGE = DOCS / "serving.md"


def test_the_error_on_the_page_is_what_the_service_answers() -> None:
    [shown] = [json.loads(block.text) for block in blocks(PAGE) if block.language == "json"]
    body = row()
    body["refernces"] = body.pop("references")
    with TestClient(create_app(Service({"a": FakeJudge()}))) as client:
        assert client.post("/judge", json=body).json() == shown


def test_every_status_of_the_routes_is_explained() -> None:
    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## When a call fails\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| ([\d, ]+) \|", section, re.M)
    assert set(ERRORS) <= {status for cell in cells for status in cell.split(", ")}
