"""Files, folders and data sets of the hub that are named as a table, and files of mappings."""

import json
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import datasets
import pytest
from huggingface_hub import constants

from data_prep.tables.mapping import TableMapping, read_mapping
from data_prep.tables.source import HubOptions, hub_rows, is_hub_id, split_files
from judging.errors import CustosError
from judging.types import parse_record
from tests.data_prep.tables.made_up import ROW, SHEET, lines, requests, save
from tests.hub_server import silent_hub

REFUSED = "http://127.0.0.1:9"


@pytest.mark.parametrize("hub", [lambda: nullcontext(REFUSED), silent_hub])
def test_an_unreachable_hub_is_one_line_within_seconds(
    hub: Callable[[], AbstractContextManager[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with hub() as address:
        template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(datasets.config, "HF_ENDPOINT", address)
        monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
        started = time.perf_counter()
        with pytest.raises(CustosError) as caught:
            list(hub_rows("lab/hieval-qs", HubOptions()))
        assert time.perf_counter() - started < 30, "the library alone would go on for longer"
    assert str(caught.value).startswith("lab/hieval-qs: no such file here")
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == "", "the library reports each time that it tries again"


@pytest.mark.parametrize(
    ("source", "expected"),
    [("lab/qs", True), ("lab/qs.jsonl", False), ("a/b/c", False), ("qs", False), ("/a/b", False)],
)
def test_hub_ids(source: str, expected: bool) -> None:
    assert is_hub_id(source) is expected


def test_files_of_a_split_are_named_after_it(tmp_path: Path) -> None:
    def names(split: str) -> list[str]:
        return [file.name for file in split_files(tmp_path, split)]

    with pytest.raises(CustosError):
        names("test")
    data = tmp_path / "data"
    data.mkdir()
    for name in ("test-00001.parquet", "test-00000.parquet", "train-00000.parquet", "README.md"):
        (data / name).touch()
    (data / "manifest.json").touch()
    assert names("test") == ["test-00000.parquet", "test-00001.parquet"]
    assert len(names("validation")) == 3, "no file of that name: all of them"
    (tmp_path / "test.json").touch()
    assert names("test") == ["test.json"], "the folder itself comes first"


def test_sources_that_are_no_tables(tmp_path: Path) -> None:
    save(tmp_path / "pairs.csv", SHEET)
    with pytest.raises(CustosError, match=r"name a file in it: pairs\.csv"):
        requests(tmp_path)
    with pytest.raises(CustosError, match=r"no such file; the nearest is '.*/pairs\.csv'"):
        requests(tmp_path / "pair.csv")
    assert requests(save(tmp_path / "c.jsonl", "")) == []


@pytest.mark.parametrize(
    ("file", "split"), [("state.json", ""), ("dataset_dict.json", "['train']")]
)
def test_a_folder_of_save_to_disk_is_named(tmp_path: Path, file: str, split: str) -> None:
    save(tmp_path / file, "{}")
    save(tmp_path / "dataset_info.json", "{}")
    call = f"datasets.load_from_disk('{tmp_path}'){split}.to_parquet('rows.parquet')"
    with pytest.raises(CustosError, match=f"{re.escape(call)}$"):
        requests(tmp_path)


def test_an_array_in_a_file_of_lines_is_named(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", [ROW])
    for text in (path.read_text(), json.dumps([ROW], indent=1)):
        with pytest.raises(CustosError, match="must end in .json$"):
            requests(save(path, text))


MAPPING = """\
columns:
  references: gold
  metadata.answerer: model
labels:
  1: Correct
  no: Wrong
separator: "|"
reference_mode: any
"""


def test_a_mapping_is_read_as_texts(tmp_path: Path) -> None:
    mapping = read_mapping(save(tmp_path / "mapping.yaml", MAPPING))
    assert mapping.columns == {"references": "gold", "metadata.answerer": "model"}
    assert mapping.labels == {"1": "Correct", "no": "Wrong"}
    assert mapping.given == {"reference_mode": "any"}
    assert read_mapping(save(tmp_path / "empty.yaml", "")) == TableMapping()
    short = read_mapping(
        save(tmp_path / "short.yaml", "map: {references: gold}\nannotators: [anna]")
    )
    assert short.columns == {"references": "gold", "annotator_labels.anna": "anna"}
    with pytest.raises(CustosError, match="quote them"):
        parse_record(TableMapping, {"labels": {True: "Correct"}}, "recipe.yaml")
    assert parse_record(TableMapping, {"labels": {1: "Correct"}}, "").labels == {"1": "Correct"}
    with pytest.raises(CustosError, match="the nearest is '.*/mapping.yaml'$"):
        read_mapping(tmp_path / "maping.yaml")


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        ("columns: {refs: gold}", "the nearest is 'references'$"),
        ("columns: {xyz: gold}", "take response, .*metadata.NAME"),
        ("columns: {reference: gold}", "the nearest is 'references'"),
        ("columns: {response: a, response_a: b}", "map 'response', or 'response_a' and"),
        ("map: {question: a}\ncolumns: {question: b}", "no such key 'map'"),
        ("column: {}", "the nearest is 'columns'; the keys are columns, "),
        ("task: hieval", "field 'task': 'hieval' is not one of charthal"),
        ("separator: ''", "field 'separator'"),
        ("- 1", "mapping.yaml"),
        ("a: [", "not valid YAML"),
        ("columns:\n  response: a\n  response: b", "'response' occurs twice(.|\\n)*line 3"),
        ('"\\ud800": 1', "half a character"),
    ],
)
def test_files_that_are_no_mappings(tmp_path: Path, content: str, advice: str) -> None:
    with pytest.raises(CustosError, match=advice):
        read_mapping(save(tmp_path / "mapping.yaml", content))


def test_a_hub_data_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def load(name: str, config: str | None, *, split: str, revision: str | None) -> object:
        asked.append((name, config, split, revision))
        return datasets.Dataset.from_list([{"question": "?", "gold": "x", "answer": "y", "n": 3}])

    monkeypatch.setattr(datasets, "load_dataset", load)
    source = Path("org/answers@v2:en/test")
    [request] = requests(source, columns={"references": "gold", "response": "answer"})
    assert (request.references, request.metadata) == (("x",), {"n": 3})
    assert set(asked) == {("org/answers", "en", "test", "v2")}
