"""A user's own wording of a benchmark's questions."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.framework.responses import read_wording
from judging.errors import CustosError


@pytest.mark.parametrize(
    "content",
    [
        b"response: caf\xe9",
        b"response: [",
        b"- a",
        b"response: 3",
        b"response: a\nresponse: b",
    ],
)
def test_a_file_that_is_no_wording_is_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "wording.yaml"
    path.write_bytes(content)
    with pytest.raises(CustosError, match=r"wording\.yaml: ") as caught:
        read_wording(path)
    assert "\n" not in str(caught.value)
