"""Splits that are held out of the training rows where the user gives no file for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from data_prep.splits.manifest import (
    MANIFEST_NAME,
    describe_file,
    load_generic,
    write_prepared,
)
from data_prep.splits.near_duplicates import cluster_together
from data_prep.splits.splits import SPLITS, HeldOut, Splits, as_split, split_examples
from data_prep.tables.examples import check_row_pictures, read_examples, show_doubles, show_reading
from data_prep.tables.mapping import (
    MAPPING_SUFFIXES,
    TableMapping,
    read_mapping,
    write_mapping,
)
from data_prep.tables.reader import BadRow
from data_prep.tables.source import open_table
from judging.errors import CustosError
from judging.files.atomic import whole_folder
from judging.files.opening import nearest_file
from judging.files.questions import question_hash, read_question_hashes
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


class RunTable(NamedTuple):
    """A table that rows of a run come from."""

    name: str
    """File or data set of the hub."""
    mapping: TableMapping

    @classmethod
    def parse(cls, text: str, mapping: TableMapping) -> RunTable:
        """Read ``TABLE`` or ``TABLE:MAPPING``, the file of a mapping of its own.

        ``mapping`` is that of tables without one, and names the task of those that name none.
        """
        name, colon, file = text.rpartition(":")
        if not (colon and name and file.endswith(MAPPING_SUFFIXES)):
            return cls(text, mapping)
        own = read_mapping(Path(file))
        return cls(name, own.model_copy(update={"task": own.task or mapping.task}))


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
    """Divide rows by question into train and the wanted splits."""
    splits = split_examples(rows, held_out_sizes(len(rows), wanted), seed)
    if empty := [split for split in ("train", *wanted) if not splits[split]]:
        questions = len({row.group for members in splits.values() for row in members})
        raise CustosError(
            f"{questions} different questions are too few to divide into train, "
            f"{', '.join(wanted)}: none is left for {', '.join(empty)}; add rows or give files"
        )
    return splits


def recipe_of_run(
    recipe: str | None,
    earlier: Path,
    mapping: TableMapping,
    init: str | None,
    out: Path | None,
    files: Mapping[Split, Sequence[str]],
) -> tuple[str, TableMapping]:
    """Find the recipe of a run, and the mapping of its tables unless there is another one."""
    if init is not None:
        raise CustosError(f"--from {earlier}: the run starts from that judge; leave out --init")
    if out is None or out.resolve() == earlier.resolve():
        raise CustosError(f"--from {earlier}: name a folder for the new judge with --out")
    if not files:
        raise CustosError(f"--from {earlier}: needs rows to go on with; give --train FILE")
    if not earlier.is_dir():
        raise CustosError(f"--from {earlier}: no such run folder")
    if recipe is None and not (file := earlier / "recipe.yaml").is_file():
        raise CustosError(f"{file}: no such file; name a recipe too")
    if (known := earlier / DATA_FOLDER / MAPPING_FILE).is_file():
        of_run = read_mapping(known)
        is_given = mapping != TableMapping()
        mapping = mapping.model_copy(update={"task": mapping.task or of_run.task})
        mapping = mapping if is_given else of_run
    return recipe or str(earlier / "recipe.yaml"), mapping


def hold_out_as_before(
    rows: Sequence[LabelledExample], wanted: Collection[Split], earlier: Path, seed: int = 0
) -> tuple[Splits, int]:
    """Divide rows as an earlier run divided its own, so that its judge can be compared.

    Rows on the questions of a held-out split of that run join its rows there, and an equal row
    takes the place of the old one, whose label or references may have been corrected. Rows on
    questions that the judge was trained on are for training. Of the rows on other questions as many
    are held out as of a first table, if they are enough for all splits. Returns too how many rows
    are left out, as their questions are near to those of two splits.
    """
    old: Splits = {split: _rows_of(earlier, split) for split in SPLITS}
    old["train"] = [row for run in _line_of_runs(earlier) for row in _rows_of(run, "train")]
    trained_on = read_question_hashes(earlier) or set()
    names = cluster_together(rows, *old.values())
    clusters = {split: set(of_split) for split, of_split in zip(old, names[1:], strict=True)}
    held = set[str]().union(*clusters.values())
    clusters["train"] |= {
        cluster
        for row, cluster in zip(rows, names[0], strict=True)
        if cluster not in held and question_hash(row) in trained_on
    }
    splits: Splits = {split: [] for split in SPLITS}
    fresh: list[LabelledExample] = []
    for row, cluster in zip(rows, names[0], strict=True):
        places = [split for split, of_split in clusters.items() if cluster in of_split]
        if not places:
            fresh.append(row)
        elif len(places) == 1 and places[0] in ("train", *wanted):
            splits[places[0]].append(row)
    num_left_out = len(rows) - len(fresh) - sum(map(len, splits.values()))
    for split in wanted:
        known = {_item(row) for row in splits[split]}
        splits[split] += [row for row in old.get(split, ()) if _item(row) not in known]
    sizes = held_out_sizes(len(fresh), wanted)
    if all(getattr(sizes, split) >= FEWEST for split in wanted):
        for split, new in split_examples(fresh, sizes, seed).items():
            splits[split] += new
    else:
        splits["train"] += fresh
    if empty := [split for split in ("train", *wanted) if not splits[split]]:
        raise CustosError(
            f"no row is left for {', '.join(empty)} beside what {earlier} held out; add rows on "
            "other questions or give files"
        )
    together = iter(cluster_together(*splits.values()))
    divided = {
        split: as_split(split, zip(of_split, next(together), strict=True), seed)
        for split, of_split in splits.items()
    }
    return divided, num_left_out


def _rows_of(run: Path, split: Split) -> list[LabelledExample]:
    path = run / DATA_FOLDER / f"{split}.jsonl"
    return load_generic(path) if path.is_file() else []


def _line_of_runs(run: Path) -> list[Path]:
    """List a run, the one that it went on from, and so on, as far as their folders are there."""
    runs: list[Path] = []
    before: Path | None = run
    while before is not None and before.is_dir() and before.resolve() not in runs:
        runs.append(before.resolve())
        source = known_object(before / DATA_FOLDER / MANIFEST_NAME).get("source")
        name = source.get("from") if isinstance(source, dict) else None
        before = Path(str(name)) if name else None
    return runs


def _item(row: LabelledExample) -> tuple[object, ...]:
    pictures = tuple(Path(name).name for name in row.images)
    return row.task, row.question, row.choices, row.responses, row.criteria, pictures


def write_run_data(
    files: Mapping[Split, Sequence[RunTable]],
    wanted: Collection[Split],
    run: Path,
    *,
    allow_dropped: bool,
    seed: int,
    command: str,
    needs_critiques: bool = False,
    earlier: Path | None = None,
) -> WrittenData:
    """Write the rows of a run to ``RUN/data``: the splits of the files, and those held out.

    If the folder already holds what these files give, it stays as it is. ``files`` are the tables
    of ``train`` and of the splits that are given; ``wanted`` are held out of ``train``, as the run
    ``earlier`` did if there is one (:func:`hold_out_as_before`). ``allow_dropped`` leaves out rows
    that cannot be used instead of stopping.
    """
    folder = run / DATA_FOLDER
    division = {
        "files": {split: [_described(table) for table in of] for split, of in files.items()},
        "held_out": sorted(wanted),
        "division_seed": seed,
        **({} if earlier is None else {"from": str(earlier)}),
    }
    if folder.is_dir() and any(folder.iterdir()) and not _is_ours(folder):
        raise CustosError(f"{folder}: holds files of yours; choose another --out")
    check_holds_run(run)
    tables = [table for of in files.values() for table in of]
    for table in tables:
        if Path(table.name).resolve().parent == folder.resolve():
            raise CustosError(
                f"{table.name}: lies where --out {run} puts its rows; choose another --out"
            )
    manifest = known_object(folder / MANIFEST_NAME)
    is_begun = (run / ADAPTER_FILE).is_file() or any(run.glob("checkpoint-*"))
    if is_begun and manifest and manifest["source"] != division:
        raise CustosError(f"{run}: holds a run on other rows; choose another --out")
    bad_rows: list[BadRow] = []
    doubles: list[str] = []
    if manifest.get("source") != division:
        given: dict[Split, list[LabelledExample]] = {split: [] for split in files}
        stems = [Path(table.name).stem for table in tables]
        for split, table in ((split, table) for split, of in files.items() for table in of):
            bad_here: dict[int, BadRow] = {}
            rows = read_examples(
                *table, bad_here, allow_dropped=allow_dropped, image_folder=run / PICTURES
            )
            check_row_pictures(table.name, rows)
            bad_rows += bad_here.values()
            doubles += show_reading(
                open_table(table.name, table.mapping.text_format), table.mapping, rows
            )
            stem = Path(table.name).stem
            name = table.name if stems.count(stem) > 1 else stem
            given[split] += [
                row if row.id else row.model_copy(update={"id": f"{name}-{number}"})
                for number, row in rows
            ]
        doubles += show_doubles((row.id, row) for row in given["train"])
        for split in TRAINED_ON if needs_critiques else ():
            _check_critiques(files.get(split, ()), given.get(split, ()))
        divided, num_near = dict[Split, list[LabelledExample]](), 0
        if wanted and earlier is not None:
            divided, num_near = hold_out_as_before(given["train"], wanted, earlier, seed)
        elif wanted:
            divided = hold_out(given["train"], wanted, seed)
        if earlier is not None and not (
            read_question_hashes(earlier) is not None or _rows_of(earlier, "train")
        ):
            doubles.append(
                f"{earlier} does not say which questions its judge was trained on: test rows may "
                "be among them, and its figures too good"
            )
        if num_near:
            doubles.append(
                f"{num_near} rows are left out: their questions are near to those of two splits, "
                f"or of one that {earlier} held out and this run does not"
            )
        with whole_folder(folder) as partial:
            manifest = write_prepared(
                partial,
                {**given, **divided, **{s: rows for s, rows in given.items() if s != "train"}},
                source=division,
                held_out=held_out_sizes(len(given["train"]), wanted),
                seed=seed,
                command=command,
                left_out={"bad_rows": len(bad_rows), "near_two_splits": num_near},
            )
            if (first := files["train"][0].mapping) != TableMapping():
                write_mapping(partial / MAPPING_FILE, first)
    counts = {split: manifest["outputs"][f"{split}.jsonl"]["rows"] for split in SPLITS}
    return WrittenData(counts, bad_rows, doubles)


def check_holds_run(folder: Path) -> None:
    """Refuse a folder that holds files and is no run folder.

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


def _described(table: RunTable) -> dict[str, object]:
    """Describe a table by its name, the hash of its content, and its mapping."""
    path, mapping = Path(table.name), table.mapping.model_dump(mode="json", exclude_defaults=True)
    if open_table(table.name).hub:
        return {"name": table.name, "mapping": mapping}
    if not path.is_file():
        raise CustosError(f"{table.name}: no such file{nearest_file(path, ROW_SUFFIXES)}")
    return {**describe_file(path), "mapping": mapping}


def _check_critiques(tables: Sequence[RunTable], rows: Sequence[LabelledExample]) -> None:
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
    table, mapping = tables[0]
    columns = open_table(table, mapping.text_format).columns(())
    raise CustosError(
        f"{', '.join(each.name for each in tables)}: {len(without)} of {len(rows)} rows have no "
        f"critique, and '{without[0].name}' trains on critiques; the columns are "
        f"{', '.join(columns)}; say which one holds them, --map critique=COLUMN{ways}"
    )


def _is_ours(folder: Path) -> bool:
    """Tell whether the rows in a folder were written by this module."""
    return str(known_object(folder / MANIFEST_NAME).get("command", "")).startswith("custos train")
