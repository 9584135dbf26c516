"""The verbs of ``custos prep`` that make examples whose labels are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from cli.shared.options import command_line, with_groups
from cli.shared.outputs import OutFolder
from cli.shared.screen import check_skipped, show_counts
from cli.shared.splits import SplitOptions, show_splits
from cli.shared.tables import AllowDropped
from data_prep.made import hard_options as options
from data_prep.made.benchmark_answers import MAKERS, generate_benchmark_answers
from data_prep.made.charts.rows import (
    TWIN_SHARE,
    PlannedRow,
    draw_pictures,
    plan_rows,
    plan_twins,
    write_captions,
    write_charts,
)
from data_prep.made.charts.scenes import KINDS
from data_prep.made.claims import generate_claims
from data_prep.made.criterion import generate_criteria
from data_prep.made.hard import generate_hard, kinds
from data_prep.made.misleading_charts import generate_chart_pairs
from data_prep.made.misleading_drawing import write_chart_pairs
from data_prep.made.objective import generate_objective
from data_prep.made.pairs import PICTURE_SHARE, generate_pairs, write_pairs
from data_prep.made.parts import MAKERS as PARTS
from data_prep.made.parts import generate_languages, generate_omissions
from data_prep.made.quick_scores import generate_examples
from data_prep.made.words.wordings import WordSplit
from data_prep.made.yes_no import generate_yes_no
from data_prep.splits.manifest import describe_file, load_generic
from data_prep.splits.splits import SPLITS, Splits, deal_made, in_splits, split_made
from judging.errors import CustosError
from judging.files.questions import normalise_question
from judging.progress import progress_over
from judging.types import LabelledExample, Split

MadeRows = Annotated[int, typer.Option(min=1, help="Make this many examples, all splits together.")]
Captions = Annotated[
    bool,
    typer.Option("--captions", help="Describe the picture in the question instead of drawing it."),
]


@with_groups
def synthetic(
    rows: MadeRows, worlds: Literal["all", "open"] = "all", *, division: SplitOptions
) -> None:
    """Make quick-scoring examples whose labels hold by construction.

    The test split uses wordings that no other split shows. Examples whose question is too similar
    to one of the test split are left out.

    Example: custos prep synthetic --out data/synthetic --rows 20000 --seed 1

    Options:
        worlds: Which questions to make. open: English questions with one answer, the easiest to
            learn from.
    """
    seed, held_out = division.seed, division.held_out
    splits, num_near_test = split_made(
        lambda number, split: generate_examples(number, seed, split, worlds), rows, held_out, seed
    )
    described = {"name": "synthetic", "rows": rows, "worlds": worlds, "seed": seed}
    division.write(splits, described, {"near_duplicates_of_test": num_near_test})


@with_groups
def claims(rows: MadeRows, *, division: SplitOptions) -> None:
    """Make explanations that give all, some or none of a reference of several sentences.

    All earns Correct, some Partial; a contradiction or nothing at all earns Wrong. Responses put
    every claim in other words than the reference. The test split uses sentences that no other split
    has.

    Example: custos prep claims --rows 6000 --out data/claims
    """
    _write_in_own_wordings("claims", generate_claims, rows, division)


@with_groups
def omissions(rows: MadeRows, *, division: SplitOptions) -> None:
    """Make answers of several parts that are complete, leave something out, or hold a wrong part.

    In English, German, Spanish and Chinese. What is left out makes a response Partial or, under
    reference_mode any, Wrong. The test split uses wordings that no other split has.

    Example: custos prep omissions --rows 2000 --out data/omissions
    """
    _write_in_own_wordings("omissions", generate_omissions, rows, division)


@with_groups
def yes_no(rows: MadeRows, *, division: SplitOptions) -> None:
    """Make answers to yes/no questions, in a word or a sentence, in four languages.

    Each response stands beside a reference that says yes and one that says no; some decide nothing.
    The test split uses wordings that no other split has.

    Example: custos prep yes-no --rows 2000 --out data/yes_no
    """
    _write_in_own_wordings("yes_no", generate_yes_no, rows, division)


@with_groups
def languages(
    rows: Annotated[int, typer.Option(min=1)],
    out: OutFolder,
    task: Annotated[str, typer.Option()] = "hieval-qs",
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Make test rows in English, German, Spanish and Chinese, to measure a judge by language.

    All are test rows; custos eval counts them by metadata.language, as it does yours.

    Example: custos prep languages --rows 800 --out data/languages

    Options:
        rows: Make this many examples, as many of each language.
        out: Write test.jsonl and manifest.json to this folder.
        task: Make rows of this task: hieval-qs, simplevqa, criterion or truthful-pair.
        seed: Another seed gives other rows.
    """
    _chosen("--task", [task], list(PARTS))
    division = SplitOptions(out, seed, val=0, cal=0, test=rows)
    splits = in_splits({"test": list(generate_languages(rows, seed, task))}, seed)
    division.write(splits, {"name": "languages", "rows": rows, "task": task, "seed": seed}, {})


@with_groups
def objective(rows: MadeRows, *, division: SplitOptions) -> None:
    """Make reasoned answers in mathematics, options, classes and short facts.

    Right and wrong final answers follow reasoning that names others first, in English and Chinese.
    The test split writes answers in forms, layouts and sentences that no other split has.

    Example: custos prep objective --rows 3600 --out data/objective
    """
    dealt = _dealt(generate_objective, rows, division)
    described = {"name": "objective", "rows": rows, "seed": division.seed}
    left_out = {"questions_of_test": rows - sum(map(len, dealt.values()))}
    division.write(in_splits(dealt, division.seed), described, left_out)


@with_groups
def criterion(
    rows: MadeRows, kinds: Literal["seen", "unseen"] = "seen", *, division: SplitOptions
) -> None:
    """Make responses that meet a criterion or miss it, for task criterion.

    Format, length, language, tone, safety, what is named or left out, relevance, agreement with a
    reference, and several at once. Every criterion is met by one of two responses, and every
    response meets one of two criteria. The test split uses topics and wordings that no other has.

    Example: custos prep criterion --rows 6000 --out data/criterion

    Options:
        kinds: unseen: all rows are test rows, of kinds of criteria that the others do not have.
    """
    seed = division.seed
    described = {"name": "criterion", "rows": rows, "kinds": kinds, "seed": seed}
    if kinds == "unseen":
        made = list(generate_criteria(rows, seed, "test", unseen_kinds=True))
        division.write(in_splits({"test": made}, seed), described, {})
        return
    dealt = _dealt(generate_criteria, rows, division)
    held = {normalise_question(row.asked) for split in ("val", "cal") for row in dealt[split]}
    dealt["train"] = [row for row in dealt["train"] if normalise_question(row.asked) not in held]
    left_out = {"rows_of_val_or_cal": rows - sum(map(len, dealt.values()))}
    division.write(in_splits(dealt, seed), described, left_out)


@with_groups
def hard(
    source: Annotated[Path, typer.Option()],
    per_question: Annotated[int, typer.Option(min=1)] = 6,
    kind: list[str] | None = None,
    *,
    division: SplitOptions,
    allow_dropped: AllowDropped = False,
) -> None:
    """Make responses that deceive a judge, and right ones in the same words.

    Denials, corrections, hedges, look-alikes, forged fields and grades, instructions to the judge,
    listed options and others: each wording is written once with a right and once with a wrong
    answer. Questions whose references are sentences or yes and no are passed over.

    Example: custos prep hard --source data/evouna --out data/hard

    Options:
        source: Read labelled rows of task hieval-qs: a file, or a folder that custos prep wrote,
            whose splits are kept.
        per_question: Draw this many wordings for each question.
        kind: Make only this kind of row. May be repeated. Default: every kind.
    """
    chosen = _chosen("--kind", kind, [*kinds(), options.KIND])
    bad_rows: list[str] = []
    files = {split: source / f"{split}.jsonl" for split in SPLITS}
    files = {name: path for name, path in files.items() if path.is_file()}
    if source.is_dir() and not files:
        raise CustosError(f"{source}: holds no train.jsonl; make it with 'custos prep'")
    read = list(files.values()) or [source]
    division.keep(*read)
    seed = division.seed
    labelled: Splits = {split: load_generic(path, bad_rows) for split, path in files.items()}
    labelled = labelled or division.divide(load_generic(source, bad_rows))
    framed = [name for name in chosen if name in kinds()]
    made = {
        split: list(generate_hard(rows, per_question, seed, framed, split)) if framed else []
        for split, rows in labelled.items()
    }
    if options.KIND in chosen:
        for split, rows in labelled.items():
            made[split] += options.generate_options(rows, per_question, seed, split)
    check_skipped(source, bad_rows, allow_dropped=allow_dropped)
    if not any(made.values()):
        raise CustosError(
            f"{source}: no question to make hard responses to: rows of task hieval-qs with short "
            "references and without options or pictures are needed"
        )
    described = {
        "name": source.name,
        "files": [describe_file(path) for path in read],
        "per_question": per_question,
        "kinds": chosen,
    }
    splits = in_splits(made, seed)
    division.write(splits, described, {"bad_rows": len(bad_rows)})
    counts = Counter(str(row.metadata["kind"]) for rows in splits.values() for row in rows)
    show_counts("kind", "rows", counts)


@with_groups
def charts(
    rows: MadeRows,
    twins: Annotated[float, typer.Option(min=0, max=1)] = TWIN_SHARE,
    captions: Captions = False,
    *,
    division: SplitOptions,
) -> None:
    """Make error-analysis examples about drawn charts, figures and shapes.

    Labels hold by construction. Four rows ask about every picture and share their group. No two
    splits share a picture. The test split has wordings of responses that no other split shows.

    With --captions the rows are a first lesson in text, before a lesson about the pictures.

    Example: custos prep charts --out data/charts --rows 20000 --seed 1

    Options:
        twins: Share of groups that begin with twins (see custos prep twins).
    """
    seed, targets = division.seed, division.held_out.targets(rows)
    counts = {split: round(size) for split, size in targets.items()}
    # As many as asked for, however shares are rounded.
    counts["train"] += rows - sum(counts.values())
    planned = {
        f"{split}.jsonl": list(
            plan_rows(size, seed, "test" if split == "test" else "train", twins, f"charts-{split}")
        )
        for split, size in counts.items()
    }
    source = {"name": "charts", "rows": rows, "seed": seed, "twins": twins, "captions": captions}
    _write_planned(division.out, planned, source)


@with_groups
def twins(
    rows: Annotated[int, typer.Option(min=1)],
    out: OutFolder,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    forms: Literal["train", "test", "all"] = "test",
    kinds: Annotated[list[str] | None, typer.Option("--kind")] = None,
    captions: Captions = False,
) -> None:
    """Make twins: one question and response under two pictures, each with another error type.

    On one picture the response reasons wrongly, on the other it misreads; the text is the same.

    Example: custos prep twins --out data/twins --rows 1000 --seed 2

    Options:
        rows: Make this many examples.
        out: Write twins.jsonl, images/ and manifest.json to this folder.
        seed: Another seed gives other pictures.
        forms: Wordings of the responses. train leaves some wordings out; test uses only those.
        kinds: Draw only this kind of picture. May be repeated. Default: every kind.
    """
    kinds = _chosen("--kind", kinds, list(KINDS))
    made = {"name": "twins", "rows": rows, "seed": seed, "forms": forms, "kinds": kinds}
    planned = {"twins.jsonl": list(plan_twins(rows, seed, forms, kinds))}
    _write_planned(out, planned, {**made, "captions": captions})


@with_groups
def chartom(
    out: OutFolder,
    pairs: Annotated[int, typer.Option(min=1)] = 56,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """Draw CHARTOM-style pairs: the same data, shown once honestly and once misleadingly.

    The right answers, and the answers of a deceived reader, hold by construction. The HMI of an
    item is what the paper reports for items of its type, until people answer the charts themselves.

    Example: custos prep chartom --out data/chartom --pairs 56 --seed 1

    Options:
        out: Write items.jsonl, images/ and manifest.json to this folder.
        pairs: Draw this many pairs; 14 show every manipulation.
        seed: Another seed gives other pairs.
    """
    from benchmarks.framework.base import get_benchmark

    table = get_benchmark("chartom").published[0]
    published = {name: (float(str(row[1])), float(str(row[3]))) for name, row in table.rows.items()}
    drawn = generate_chart_pairs(pairs, seed)
    manifest = write_chart_pairs(
        out,
        progress_over(drawn, "drawing", pairs),
        published,
        source={"name": "chartom", "pairs": pairs, "seed": seed},
        command=command_line(),
    )
    show_counts("manipulation", "pairs", manifest["manipulations"])
    typer.echo(f"{pairs} pairs, {2 * pairs} charts in {out}")


@with_groups
def pairs(
    rows: Annotated[int, typer.Option(min=1)],
    pictures: Annotated[float, typer.Option(min=0, max=1)] = PICTURE_SHARE,
    both_orders: bool = True,
    *,
    division: SplitOptions,
) -> None:
    """Make pairs of responses about charts, of known truth and faults, with critiques.

    The test split uses only wordings that no other split has. The folder scores/ holds the same
    responses one by one, with critiques and scores from 0 to 10.

    Example: custos prep pairs --out data/pairs --rows 8000 --seed 1

    Options:
        rows: Make this many pairs, all splits together.
        pictures: Share of pairs with a picture; half of these need it.
        both_orders: Write every training pair in both orders of its responses.
    """
    seed, held_out = division.seed, division.held_out
    splits = deal_made(
        lambda number, split: generate_pairs(number, seed, split, pictures),
        rows,
        held_out,
        seed,
        lambda row: str(row.pair.metadata["asked"]),
    )
    written = write_pairs(
        division.out,
        splits,
        both_orders=both_orders,
        source={"name": "pairs", "rows": rows, "seed": seed, "pictures": pictures},
        held_out=held_out,
        seed=seed,
        command=command_line(),
    )
    show_splits(written, division.out)


@with_groups
def benchmark_answers(
    rows: MadeRows,
    tasks: Annotated[list[str] | None, typer.Option("--task")] = None,
    *,
    division: SplitOptions,
) -> None:
    """Make questions and responses for judges of ChartHal, SimpleVQA and CHARTOM's FACT.

    Labels hold by construction: the rubric of the task follows from what a response claims, denies,
    leaves out or says for certain. SimpleVQA's rows are English and Chinese. Charts, questions and
    responses of the test split use topics and wordings that no other split shows. Examples whose
    question is too similar to one of the test split are left out.

    Example: custos prep benchmark-answers --rows 3500 --out data/benchmarks

    Options:
        tasks: Make rows of this task: charthal, simplevqa or chartom-fact. May be repeated.
            Default: all three.
    """
    chosen, seed = _chosen("--task", tasks, list(MAKERS)), division.seed
    splits, num_near_test = split_made(
        lambda number, split: generate_benchmark_answers(number, seed, split, chosen),
        rows,
        division.held_out,
        seed,
    )
    described = {"name": "benchmark-answers", "rows": rows, "tasks": chosen, "seed": seed}
    division.write(splits, described, {"near_duplicates_of_test": num_near_test})
    counts = Counter(f"{row.task}: {row.label}" for members in splits.values() for row in members)
    show_counts("task and label", "rows", counts)


Maker = Callable[[int, int, WordSplit], Iterator[LabelledExample]]


def _dealt(
    generate: Maker, rows: int, division: SplitOptions
) -> dict[Split, list[LabelledExample]]:
    """Make so many rows, those of the test split in held-out wordings."""
    seed = division.seed
    return deal_made(
        lambda number, split: generate(number, seed, split),
        rows,
        division.held_out,
        seed,
        lambda row: row.group,
    )


def _write_in_own_wordings(name: str, generate: Maker, rows: int, division: SplitOptions) -> None:
    """Make rows and write them."""
    splits = in_splits(_dealt(generate, rows, division), division.seed)
    division.write(splits, {"name": name, "rows": rows, "seed": division.seed}, {})


def _chosen(option: str, given: list[str] | None, known: list[str]) -> list[str]:
    """Choose what an option names, or all; refuse a name that is not known."""
    if unknown := sorted(set(given or ()) - {*known}):
        raise CustosError(f"{option} '{unknown[0]}': expected one of {', '.join(known)}")
    return given or known


def _write_planned(
    out: Path, planned: Mapping[str, Sequence[PlannedRow]], source: Mapping[str, Any]
) -> None:
    """Draw or describe planned rows, write them, and print how many of each label there are.

    ``planned`` maps the name of each file to its rows. ``source`` goes to the manifest; its
    ``captions`` says to draw nothing.
    """
    captions = source["captions"]
    make, activity = (write_captions, "captioning") if captions else (draw_pictures, "drawing")
    made = {
        name: make(progress_over(rows, f"{activity} {name}", len(rows)))
        for name, rows in planned.items()
    }
    manifest = write_charts(out, made, source=dict(source), command=command_line())
    labels = sorted({label for counts in manifest["counts"].values() for label in counts})
    table = Table("label")
    for name in planned:
        table.add_column(name, justify="right")
    for label in labels:
        table.add_row(label, *(str(manifest["counts"][name].get(label, 0)) for name in planned))
    Console(highlight=False).print(table)
    num_rows = sum(map(len, planned.values()))
    typer.echo(
        f"{num_rows} examples, {manifest['images']} pictures, {manifest['twins']} twins in {out}"
    )
