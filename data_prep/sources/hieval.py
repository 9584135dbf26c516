"""HiEval-style data: responses to questions with a known answer set, labelled on three levels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from data_prep.tables.cells import json_value, with_nested_columns
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import TableReader
from data_prep.tables.source import HubOptions, Table, is_hub_id, split_files
from judging.errors import CustosError
from judging.types import LabelledExample

COLUMNS = {"question": "question", "references": "answer", "response": "response", "label": "label"}
"""Our fields and the columns that fill them if nothing else is said."""


def load_hieval(
    source: Path | str,
    mapping: TableMapping | None = None,
    metadata: Mapping[str, str] | None = None,
    *,
    hub: HubOptions | None = None,
    image_folder: Path | None = None,
    bad_rows: list[str] | None = None,
) -> list[LabelledExample]:
    """Read labelled responses from a local file or a data set on the Hugging Face hub.

    The source is a CSV, TSV, JSONL, JSON or Parquet file; a folder of a hub data set; or a hub id
    (``owner/name``). What is here wins over the hub, and of a folder only the split of ``hub``
    counts. ``metadata`` maps our names (``answerer``) to columns, and no other column is read than
    these and the mapped ones. Rows are of task ``hieval-ea`` if a column has the type of error, or
    else of ``hieval-qs``, with ``reference_mode="all"`` and absolute image paths; images that come
    as bytes are saved in ``image_folder``. Errors are those of :func:`read_records`;
    ``CustosError`` is also raised if a column is empty in every row.
    """
    mapping, hub, path = mapping or TableMapping(columns=COLUMNS), hub or HubOptions(), Path(source)
    columns, metadata, separator = mapping.columns, metadata or {}, mapping.separator or ";"
    task = "hieval-ea" if "error_type" in columns else "hieval-qs"
    mapping = mapping.model_copy(update={"task": task, "separator": separator})
    if is_hub_id(source):
        tables = [Table(str(source), Path.cwd(), hub)]
    else:
        folder = path if path.is_dir() else path.parent
        files = split_files(path, hub.split) if path.is_dir() else [path]
        tables = [Table(str(file), folder) for file in files]
    named = (*columns.values(), *metadata.values())
    examples: list[LabelledExample] = []
    filled: set[str] = set()
    for table in tables:
        reader = TableReader(table, LabelledExample, mapping, image_folder, picks_cells=True)
        for number, stored in table.rows():
            row = with_nested_columns(stored, named)
            # No other column is read for its name.
            picked = (
                {c: row[c] for c in columns.values() if c in row} if isinstance(row, dict) else row
            )
            try:
                example = reader.read(number, picked)
            except CustosError as error:
                text = str(error).replace("--map ", "--field ").replace("--labels ", "--label ")
                if bad_rows is None:
                    raise CustosError(text) from None
                bad_rows.append(text)
                continue
            kept = {
                ours: json_value(row[their]) for ours, their in metadata.items() if their in row
            }
            names = {"id": example.id or f"{table.path.stem}-{number}", "source": path.stem}
            kind = {"error_type": example.error_type} if "error_type" in columns else {}
            fields = example.model_dump(exclude={"second_label"}, exclude_unset=True)
            examples.append(LabelledExample(**{**fields, **kind, **names, "metadata": kept}))
            filled |= {name for name, cell in row.items() if cell not in (None, "", [])}
            filled.add(columns["response"])  # an empty one is a response
    if examples and (empty := [column for column in named if column not in filled]):
        raise CustosError(f"{source}: column '{empty[0]}' is missing or empty in every row")
    return examples
