"""Options that say which columns of a table hold our fields, and what its labels mean."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cli.shared.command_line import read_assignments
from data_prep.tables.mapping import TableMapping, read_mapping
from judging.types import parse_record

TABLE_FORMATS = "CSV, TSV, JSONL, JSON or Parquet file, or hub data set (owner/name:split)"
"""What a table may be, for help texts."""

Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        help="OURS=THEIRS: read our field OURS from the column THEIRS, such as references=gold or "
        "metadata.answerer=model. May be repeated. Default: columns called like our fields.",
    ),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        help="THEIRS=OURS,...: read their label THEIRS as our label OURS, such as "
        "right=Correct,wrong=Wrong; skip= says that it is no label. May be repeated. Default: the "
        "labels are ours, in any case.",
    ),
]
Annotators = Annotated[
    str | None,
    typer.Option(
        "--annotators",
        help="Columns that hold the labels of one person each, such as anna,ben,carla. A row "
        "without a label of its own has the one that most of them gave. Default: none.",
    ),
]
Mapping = Annotated[
    Path | None,
    typer.Option(
        "--mapping",
        help="Read --map, --labels and the options below them from this YAML file; what is given "
        "as an option wins. Default: none.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        help="Text between several references in one cell. Default: ; in CSV and TSV files.",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        help="What separates the cells of a CSV or TSV file: comma, semicolon, tab, pipe or a "
        "character. Default: what suits its rows.",
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        help="Encoding of the file, such as cp1252 or utf-16-le. Default: UTF-8, or UTF-16 if it "
        "begins with a byte order mark.",
    ),
]
ReferenceMode = Annotated[
    Literal["any", "all"] | None,
    typer.Option(
        "--reference-mode",
        help="any: each reference alone is right; all: together they are the answer. Default: "
        "the row's, or all.",
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        "--task",
        help="Task of every row; a row that names another task must have the same labels. Default: "
        "the row's, or hieval-qs.",
    ),
]
Variant = Annotated[
    str | None, typer.Option("--variant", help="Variant of the task. Default: the row's, or plain.")
]
Reasoning = Annotated[
    Literal["drop", "keep"] | None,
    typer.Option(
        "--reasoning",
        help="drop: what a response holds in thinking tags (<think> and its like) is not graded; "
        "keep: it is. Default: the row's, or drop.",
    ),
]
AllowDropped = Annotated[
    bool,
    typer.Option(
        "--allow-dropped", help="Leave out rows that cannot be used, instead of stopping."
    ),
]


@dataclass(frozen=True)
class TableOptions:
    """Options that say which columns of a table hold our fields, and what its labels mean."""

    columns: Map = None
    labels: Labels = None
    annotators: Annotators = None
    mapping: Mapping = None
    separator: Separator = None
    delimiter: Delimiter = None
    encoding: Encoding = None
    reference_mode: ReferenceMode = None
    task: Task = None
    variant: Variant = None
    reasoning: Reasoning = None

    def words(self) -> list[str]:
        """Return the options as they are typed, for a command that reads the same table."""
        pairs = [("--map", text) for text in self.columns or ()]
        pairs += [("--labels", text) for text in self.labels or ()]
        single = {"annotators": self.annotators, "mapping": self.mapping, **self._single()}
        pairs += [
            (f"--{name.replace('_', '-')}", str(value)) for name, value in single.items() if value
        ]
        return [word for pair in pairs for word in pair]

    def _single(self) -> dict[str, str]:
        """Return the options that have one value, by the key of a mapping."""
        names = (
            "separator",
            "delimiter",
            "encoding",
            "reference_mode",
            "task",
            "variant",
            "reasoning",
        )
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def read(self) -> TableMapping:
        """Return the mapping that the options and the file of ``--mapping`` say; options win.

        Raises:
            CustosError: If an option or the file is no mapping.
        """
        from_file = TableMapping() if self.mapping is None else read_mapping(self.mapping)
        pairs = [pair for text in self.labels or () for pair in text.split(",") if pair.strip()]
        columns = read_assignments(self.columns, "--map", "OURS=THEIRS, each field once", once=True)
        labels = read_assignments(
            pairs, "--labels", "THEIRS=OURS, each label once", once=True, may_be_empty=True
        )
        values: dict[str, Any] = {"columns": columns, "labels": labels, **self._single()}
        if self.annotators:
            values["annotators"] = [name.strip() for name in self.annotators.split(",")]
        options = parse_record(TableMapping, values, "--map, --labels, --task")
        merged = from_file.model_dump(exclude_unset=True) | options.model_dump(exclude_unset=True)
        merged["columns"] = {**from_file.columns, **options.columns}
        merged["labels"] = {**from_file.labels, **options.labels}
        return parse_record(TableMapping, merged, "--map and --mapping")
