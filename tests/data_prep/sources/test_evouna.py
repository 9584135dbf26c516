import json
from pathlib import Path
from typing import Any

import pytest

from data_prep.sources.evouna import ANSWERERS, load_evouna
from judging.errors import CustosError
from tests.data_prep.tables.made_up import save
from tests.published_files import needs_published, published

PUBLISHED = "evouna/NQ.json"


def row(**fields: Any) -> dict[str, Any]:
    answers = {f"answer_{name}": f"{name} says Paris" for name in ANSWERERS}
    judgements = {f"judge_{name}": True for name in ANSWERERS}
    base = {"question": "capital of france", "golden_answer": "Paris", "improper": False}
    return {**base, **answers, **judgements, **fields}


def test_every_field_of_an_example(tmp_path: Path) -> None:
    rows = [row(improper=True), row(golden_answer="Paris/ city of light //Paris", judge_gpt4=False)]
    examples = load_evouna(save(tmp_path / "nq.json", json.dumps(rows)))
    assert [e.id for e in examples] == [f"evouna-2-{name}" for name in ANSWERERS]
    gpt4 = examples[3].model_dump(exclude_defaults=True)
    assert gpt4.pop("group")
    assert gpt4 == {
        "id": "evouna-2-gpt4",
        "question": "capital of france",
        "references": ("Paris", "city of light"),
        "reference_mode": "any",
        "responses": ("gpt4 says Paris",),
        "label": "Wrong",
        "metadata": {"answerer": "gpt4"},
        "source": "evouna",
    }
    assert [e.label for e in examples].count("Correct") == 4
    assert (examples[3].task, examples[3].variant) == ("hieval-qs", "plain")


def test_files_have_ids_of_their_own(tmp_path: Path) -> None:
    """NQ keeps the ids that it has had, and other files can be joined with it."""
    files = [save(tmp_path / name, json.dumps([row()])) for name in ("NQ.json", "TQ.json")]
    of_nq, of_tq = ([example.id for example in load_evouna(file)] for file in files)
    assert of_nq == [f"evouna-1-{name}" for name in ANSWERERS]
    assert of_tq == [f"evouna-tq-1-{name}" for name in ANSWERERS]


def test_groups_and_what_is_skipped(tmp_path: Path) -> None:
    rows = [row(), row(question="Capital of France?"), row(question="capital of spain")]
    rows += [row(answer_fid=None, judge_gpt35=None, answer_newbing="")]
    rows += [row(improper=True, golden_answer=None)]
    examples = load_evouna(save(tmp_path / "nq.json", json.dumps(rows)))
    groups = [example.group for example in examples]
    assert len(set(groups[:10])) == 1
    assert groups[0] != groups[10]
    answerers = [example.metadata["answerer"] for example in examples]
    assert answerers[15:] == ["chatgpt", "gpt4", "newbing"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"judge_fid": "yes"}, "judge_fid"),
        ({"golden_answer": " / "}, "golden_answer"),
        ({"improper": None}, "improper"),
    ],
)
def test_a_bad_row_names_file_row_and_field(
    tmp_path: Path, fields: dict[str, Any], field: str
) -> None:
    path = save(tmp_path / "nq.json", json.dumps([row(), row(**fields), row()]))
    with pytest.raises(CustosError, match=rf"nq\.json row 2: field '{field}'"):
        load_evouna(path)
    bad_rows: list[str] = []
    assert len(load_evouna(path, bad_rows)) == 10
    assert len(bad_rows) == 1
    assert f"row 2: field '{field}'" in bad_rows[0]


@needs_published(PUBLISHED)
def test_the_published_file() -> None:
    examples = load_evouna(published(PUBLISHED))
    assert len(examples) == 15_098
    num_right = sum(e.label == "Correct" for e in examples)
    assert round(100 * num_right / len(examples), 1) == 73.2
    assert len({e.id for e in examples}) == len(examples)
