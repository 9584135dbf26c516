"""Splits that are held out of the training rows where the user gives no file for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from data_prep.splits.manifest import MANIFEST_NAME, describe_file, write_prepared
from data_prep.splits.splits import SPLITS, HeldOut, Splits, split_examples
from data_prep.tables.examples import check_row_pictures, read_examples, show_doubles, show_reading
from data_prep.tables.mapping import TableMapping, write_mapping
from data_prep.tables.reader import BadRow
from data_prep.tables.source import open_table
from judging.errors import CustosError
from judging.files.atomic import whole_folder
from judging.files.opening import nearest_file
from judging.files.records import ROW_SUFFIXES, known_object
from judging.models.adapters import ADAPTER_FILE
from judging.tasks import get_task
from judging.types import LabelledExample, Split
from train.setup.run_log import LAUNCH_LOG, LOG_FILE

DATA_FOLDER = "data"
"""Folder of a run folder with the rows that the run uses."""
PICTURES = "pictures"
"""Folder of a run folder with pictures that a table holds as bytes."""
MAPPING_FILE = "mapping.yaml"
"""The mapping of the tables, so that the judge can grade them with it."""
RUN_FILES = (PICTURES, ADAPTER_FILE, LOG_FILE, LAUNCH_LOG, "checkpoint-*", "preferences.jsonl")
"""Files and folders of which every run folder has one, if not rows that ``custos train`` wrote."""
BESIDE_RUNS = (".lock", ".log", ".out", ".txt")
"""Endings of logs and locks of whoever starts a run; a run replaces no such file."""
TRAINED_ON: tuple[Split, ...] = ("train", "val")

SHARES = {"val": 0.1, "cal": 0.1, "test": 0.2}
"""Share of the rows that each held-out split gets ..."""
FEWEST = 4
"""... but at least so many rows, or a fifth of them if that is less, ..."""
MOST = {"val": 500, "cal": 1000, "test": 2000}
"""... and at most so many: more would not make the figures much surer."""


class WrittenData(NamedTuple):
    """Rows that were written for a run."""

    counts: dict[Split, int]
    """Number of rows in each split."""
    bad_rows: list[BadRow]
    """Rows that were left out."""
    doubles: list[str]
    """Lines on how references were read and rows occur twice, if the tables were read."""


def held_out_sizes(num_rows: int, wanted: Collection[Split]) -> HeldOut:
    """Choose the sizes of the splits that are held out of so many rows; 0 for the others."""
    sizes = {
        split: min(max(round(share * num_rows), min(FEWEST, num_rows // 5)), MOST[split])
        for split, share in SHARES.items()
        if split in wanted
    }
    return HeldOut(**{split: sizes.get(split, 0) for split in SHARES})


def hold_out(rows: Sequence[LabelledExample], wanted: Collection[Split], seed: int = 0) -> Splits:
    """Divide rows by question into train and the wanted splits.

    Raises ``CustosError`` if there are too few questions for all of them.
    """
    splits = split_examples(rows, held_out_sizes(len(rows), wanted), seed)
    if empty := [split for split in ("train", *wanted) if not splits[split]]:
        questions = len({row.group for members in splits.values() for row in members})
        raise CustosError(
            f"{questions} different questions are too few to divide into train, "
            f"{', '.join(wanted)}: none is left for {', '.join(empty)}; add rows or give files"
        )
    return splits


def write_run_data(
    files: Mapping[Split, str],
    wanted: Collection[Split],
    run: Path,
    *,
    mapping: TableMapping,
    allow_dropped: bool,
    seed: int,
    command: str,
    needs_critiques: bool = False,
) -> WrittenData:
    """Write the rows of a run to ``RUN/data``: the splits of the files, and those held out.

    If the folder already holds what these files give, it stays as it is. ``files`` are the tables
    of ``train`` and of the splits that are given; ``wanted`` are held out of ``train``.
    ``allow_dropped`` leaves out rows that cannot be used instead of stopping. Raises
    ``CustosError`` if a table cannot be read, has bad rows or lacks critiques, or the folder
    belongs to a run on other rows, or to another program.
    """
    folder = run / DATA_FOLDER
    described: dict[Split, dict[str, str]] = {}
    for split, table in files.items():
        path = Path(table)
        if open_table(table).hub:
            described[split] = {"name": table}
        elif path.is_file():
            described[split] = describe_file(path)
        else:
            raise CustosError(f"{table}: no such file{nearest_file(path, ROW_SUFFIXES)}")
    division = {
        "files": described,
        "mapping": mapping.model_dump(mode="json", exclude_defaults=True),
        "held_out": sorted(wanted),
        "division_seed": seed,
    }
    if folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder):
        raise CustosError(f"{folder}: holds files of yours; choose another --out")
    check_holds_run(run)
    for table in files.values():
        if Path(table).resolve().parent == folder.resolve():
            raise CustosError(
                f"{table}: lies where --out {run} puts its rows; choose another --out"
            )
    manifest = known_object(folder / MANIFEST_NAME)
    is_begun = (run / ADAPTER_FILE).is_file() or any(run.glob("checkpoint-*"))
    if is_begun and manifest and manifest["source"] != division:
        raise CustosError(f"{run}: holds a run on other rows; choose another --out")
    bad_rows: list[BadRow] = []
    doubles: list[str] = []
    if manifest.get("source") != division:
        given: dict[Split, list[LabelledExample]] = {}
        for split, table in files.items():
            bad_here: dict[int, BadRow] = {}
            rows = read_examples(
                table, mapping, bad_here, allow_dropped=allow_dropped, image_folder=run / PICTURES
            )
            check_row_pictures(table, rows)
            bad_rows += bad_here.values()
            doubles += show_reading(open_table(table, mapping.text_format), mapping, rows)
            given[split] = [
                row if row.id else row.model_copy(update={"id": f"{Path(table).stem}-{number}"})
                for number, row in rows
            ]
        doubles += show_doubles(given["train"])
        for split in TRAINED_ON if needs_critiques else ():
            _check_critiques(files.get(split, ""), given.get(split, ()), mapping)
        divided = hold_out(given["train"], wanted, seed) if wanted else {}
        with whole_folder(folder) as partial:
            manifest = write_prepared(
                partial,
                {**given, **divided, **{s: rows for s, rows in given.items() if s != "train"}},
                source=division,
                held_out=held_out_sizes(len(given["train"]), wanted),
                seed=seed,
                command=command,
                left_out={"bad_rows": len(bad_rows)},
            )
            if mapping != TableMapping():
                write_mapping(partial / MAPPING_FILE, mapping)
    counts = {split: manifest["outputs"][f"{split}.jsonl"]["rows"] for split in SPLITS}
    return WrittenData(counts, bad_rows, doubles)


def check_holds_run(folder: Path) -> None:
    """Refuse a folder with files of which none says that it is a run folder.

    A missing or empty one becomes a run folder.
    """
    is_run = _is_ours(folder / DATA_FOLDER) or any(any(folder.glob(name)) for name in RUN_FILES)
    if is_run or not folder.is_dir():
        return
    names = sorted(
        path.name
        for path in folder.iterdir()
        if not path.name.startswith(".") and path.suffix not in BESIDE_RUNS
    )
    if names:
        more = ", ..." if len(names) > 3 else ""
        raise CustosError(
            f"{folder}: the folder holds files that are not of a run "
            f"({', '.join(names[:3])}{more}); name a new folder with --out (run.output)"
        )


def _check_critiques(table: str, rows: Sequence[LabelledExample], mapping: TableMapping) -> None:
    """Raise ``CustosError`` if rows that are trained on lack the critique of their task."""
    without = [
        task
        for row in rows
        for task in [get_task(row.task)]
        if task.critique and not row.critique and task.rule_if_empty(row) is None
    ]
    if not without:
        return
    ways = ""
    if without[0].num_responses > 1:
        ways = (
            ", or train without critiques: 'custos train truthful-pure-label' for labels, "
            f"'custos train embedded/pair_bradley_terry --task {without[0].name}' for rewards"
        )
    columns = open_table(table, mapping.text_format).columns(())
    raise CustosError(
        f"{table}: {len(without)} of {len(rows)} rows have no critique, and "
        f"'{without[0].name}' trains on critiques; the columns are {', '.join(columns)}; say which "
        "one holds them, "
        f"--map critique=COLUMN{ways}"
    )


def _is_ours(folder: Path) -> bool:
    """Tell whether the rows in a folder were written by this module."""
    return str(known_object(folder / MANIFEST_NAME).get("command", "")).startswith("custos train")
