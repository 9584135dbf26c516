"""``custos train``, ``sweep`` and ``recipe``: from labelled rows to a judge, and its recipes."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from cli.eval import STATUS
from cli.shared.options import AsJson, Keys, command_line, with_groups
from cli.shared.outputs import OutFolder, Verb, output_folder
from cli.shared.screen import in_columns, show_skipped, wide_console
from cli.shared.tables import TABLE_FORMATS, AllowDropped, TableOptions
from data_prep.tables.reader import task_fields
from evaluation.comparisons.compare import MARGIN, Outcome, gate, gate_outcome, read_shared
from evaluation.estimate import paired_accuracies
from evaluation.report.text import with_interval
from judging.errors import CustosError
from judging.files.atomic import write_text
from judging.files.records import read_records, write_json
from judging.types import LabelledExample, Split
from train.rows.held_out import DATA_FOLDER
from train.setup.recipe import find_recipe, recipe_names, summary_of

TRAIN_HELP = (
    f"Train on this {TABLE_FORMATS}. May be repeated; with :FILE.yaml behind it the table has a "
    "mapping of its own. Default: the files in the recipe."
)
METAVAR = "TABLE[:MAPPING]"
Tables = list[str] | None
COMPARED = "compared"
"""Folder of a run with the evaluations of the judge before it and of its own."""
OUTCOME_FILE = "comparison.json"


@with_groups
def train(
    recipe: Annotated[str | None, typer.Argument(metavar="[RECIPE|TASK]")] = None,
    keys: Keys = None,
    train_table: Annotated[
        Tables, typer.Option("--train", metavar=METAVAR, help=TRAIN_HELP)
    ] = None,
    val: Annotated[Tables, typer.Option(metavar=METAVAR)] = None,
    cal: Annotated[Tables, typer.Option(metavar=METAVAR)] = None,
    test: Annotated[Tables, typer.Option(metavar=METAVAR)] = None,
    *,
    table_options: TableOptions,
    allow_dropped: AllowDropped = False,
    earlier: Annotated[Path | None, typer.Option("--from", metavar="RUN")] = None,
    margin: Annotated[float, typer.Option(min=0.0, max=1.0)] = MARGIN,
    init: str | None = None,
    out: Annotated[Path | None, typer.Option(callback=output_folder)] = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    processes: Annotated[int | None, typer.Option(min=1)] = None,
    dry_run: Annotated[int | None, typer.Option(min=1, metavar="N")] = None,
    random_weights: Annotated[bool, typer.Option("--random-weights")] = False,
    config_file: Path | None = None,
) -> None:
    """Train a judge on labelled rows, calibrate it, and measure it on rows it has not seen.

    One table is enough: it is divided by question into rows to train on, to choose the best step
    with, to calibrate with and to measure with, in OUT/data. If the run is stopped, the same
    command goes on from its last checkpoint.

    With --from RUN training goes on from the judge of an earlier run, with its recipe and mapping.
    What that run held out stays held out, also of new tables, with corrected labels where they have
    some. Both judges grade the test rows. The new one takes the place of the old one only if it is
    shown to be no worse by the margin, as in 'custos compare --gate'; the exit status is 1 if it is
    worse, and 3 if the rows are too few to say. OUT/comparison.json names the judge to use.

    Example: custos train hieval-qs --train labels.csv --map references=gold
    --labels right=Correct,wrong=Wrong --out runs/mine

    Example: custos train --from runs/mine --train labels-2.csv --train more.xlsx:more.yaml
    --out runs/mine-2

    Example: custos train my.yaml --train a.jsonl --test b.jsonl optim.epochs=5

    Example: custos train hieval_stage1 --train rows.parquet --processes 4

    Example: custos train hieval_stage1 --config-file fsdp2

    Example: custos train hieval_stage1 --dry-run 2 --random-weights

    Options:
        recipe: A recipe's file, its name in 'custos recipe list', or the name of a task in 'custos
            tasks'; for a task, the recipe goes on from a shipped judge. Default: that of --from.
        val: Choose the best step here. Default: a part of train.
        cal: Calibrate confidences. Default: a part of train.
        test: Measure the judge here. Default: a part of train.
        earlier: Go on from the judge in this run folder, and compare the new judge with it.
            Default: start as the recipe says, and compare with nothing.
        margin: With --from: take a loss of accuracy below this for none.
        init: Start from this shipped judge or run folder. Default: the recipe's.
        out: Write the run to this folder. Default: the recipe's run.output.
        seed: Seed of the run and of the division. Default: the recipe's.
        processes: Train in so many processes. Default: one for each GPU, or one.
        dry_run: Take N steps on the first rows, validate, save, load, calibrate, grade and serve in
            a temporary folder, and print seconds and memory. Default: train.
        random_weights: Train on random weights in the shape of the recipe's backbone, where its own
            cannot be had; the judge knows nothing.
        config_file: Start processes as this file of 'accelerate config' says, or a shipped one:
            with 'fsdp2' they share one model, with 'zero2' gradients and moments (DeepSpeed).
            Default: each has a copy.
    """
    from train.launch.front import TrainingRun, stop_message

    if dry_run:  # it leaves the run's folder alone
        out = Path(tempfile.mkdtemp(prefix="custos-dry-run-"))
    tables: dict[Split, Tables] = {"train": train_table, "val": val, "cal": cal, "test": test}
    if recipe is not None and earlier is not None and "=" in recipe:  # a key, and no recipe
        keys, recipe = [recipe, *(keys or [])], None
    run = None
    try:
        run = TrainingRun.plan(
            recipe,
            keys or [],
            {split: table for split, table in tables.items() if table},
            table_options.read(),
            earlier=earlier,
            init=init,
            out=out,
            seed=seed,
            command=command_line(),
        )
        if run.files:
            data = run.write_data(allow_dropped=allow_dropped)
            show_skipped(row.error for row in data.bad_rows)
            for line in (run.describe_data(data.counts), *data.doubles):
                typer.echo(line)
        trial = ["--dry-run", str(dry_run)] if dry_run else []
        trial += ["--random-weights"] if random_weights else []
        run.start(processes, config_file, trial)
    except KeyboardInterrupt:
        typer.echo(f"\n{stop_message(run.output, run.command) if run else 'stopped'}", err=True)
        raise typer.Exit(130) from None
    finally:
        if dry_run and out:
            shutil.rmtree(out, ignore_errors=True)
    if earlier is not None and not dry_run:
        outcome, line = _choose_judge(earlier, run.output, margin, run.task)
        typer.echo(line)
        raise typer.Exit(STATUS[outcome])


def _choose_judge(old: Path, new: Path, margin: float, task: str | None) -> tuple[Outcome, str]:
    """Have both judges grade the test rows of a run, and decide which one to use, in a line.

    The rows are graded under the ``task`` that the recipe trains all rows under, if it names one.
    The evaluations stay in the folder of the run, and so does the decision.
    """
    from evaluation.outcomes import save_evaluation
    from evaluation.report.evaluate import grade_examples, resolve_examples
    from judging.judge import Judge

    path, fields = new / DATA_FOLDER / "test.jsonl", task_fields(task) if task else {}
    test = [
        row.model_copy(update={"id": f"{number}-{row.id}", **fields})  # tables may use an id each
        for number, row in read_records(path, LabelledExample)
    ]
    folders = [new / COMPARED / name for name in ("before", "after")]
    for run, folder in zip((old, new), folders, strict=True):
        judge = Judge.load(str(run))
        rows = resolve_examples(judge, test)
        save_evaluation(folder, test, grade_examples(judge, rows))
    before, after = read_shared(folders[0], folders[1], 1).outcomes
    accuracy = paired_accuracies(after.right.tolist(), before.right.tolist(), before.clusters)
    checks = gate(folders[0], folders[1], margin=margin, min_common=1)
    outcome, of_all = gate_outcome(checks), checks[0]
    chosen = new if outcome == "no worse" else old
    decision = {
        "judge": str(chosen),
        "outcome": outcome,
        "margin": margin,
        "accuracy": accuracy,
        "checks": [{**asdict(check), "outcome": check.outcome} for check in checks],
    }
    write_json(new / OUTCOME_FILE, decision)
    reason = {
        "no worse": f"it loses less than {margin:g}, and is worse on no part of the rows",
        "worse": "the new one is worse: "
        + ", ".join(check.name for check in checks if check.outcome == "worse"),
        "not enough rows": f"the rows are too few: the new one may lose {-of_all.lowest:.3f}, and "
        f"a loss is visible from {of_all.visible:.3f} on",
    }[outcome]
    return outcome, (
        f"{old} is right in {of_all.a:.3f} and {new} in {of_all.b:.3f} of {of_all.n} test rows, "
        f"a difference of {with_interval(accuracy['difference'])} on {accuracy['clusters']} "
        "questions\n"
        f"judge to use: {chosen}; {reason}; all figures: "
        f"custos compare {folders[0]} {folders[1]} --min-common 1"
    )


@with_groups
def sweep(
    recipe: str,
    keys: Keys = None,
    seeds: Annotated[int, typer.Option(min=1, metavar="N")] = 5,
    out: OutFolder = Path("runs/sweep"),
    processes: Annotated[int | None, typer.Option(min=1)] = None,
) -> None:
    """Train a recipe with several seeds, one after the other, and sum the reports up.

    The table has mean, standard deviation and 95 % interval (Student's t over the runs) of every
    metric. If the command is stopped, the same command goes on: finished seeds are kept, and the
    one that was stopped goes on from its last checkpoint. With a larger --seeds it adds runs.

    Example: custos sweep hieval_stage1 --seeds 5 --out runs/hieval_stage1_seeds

    Options:
        recipe: A recipe's file, or its name in 'custos recipe list'.
        seeds: Train with the seeds 0 to N - 1.
        out: Write the run folders seed-0, seed-1 ... and sweep.json to this folder.
        processes: Train in so many processes. Default: one for each GPU, or one.
    """
    from rich.table import Table

    from train.launch.sweep import RESULT_FILE, Sweep, sweep_rows

    runs = Sweep(recipe, tuple(keys or ()), tuple(range(seeds)), out)
    runs.open()
    for seed in runs.open_seeds():
        typer.echo(f"seed {seed}: {runs.folder(seed)}")
        runs.train(seed, processes)
        runs.result()
    result = runs.result()
    table = Table("metric", title=f"{recipe}, {len(result['seeds'])} seeds")
    for heading in ("mean", "std", "95 % interval"):
        table.add_column(heading, justify="right")
    for row in sweep_rows(result["metrics"]):
        table.add_row(*row)
    wide_console().print(table)
    typer.echo(f"{out / RESULT_FILE}")


app = typer.Typer(
    no_args_is_help=True,
    help="List, show and copy the recipes that train judges, and explain their keys.",
)

INDENT = " " * 6
Name = Annotated[str, typer.Argument(help="Recipe of 'custos recipe list', or a file.")]


@app.command("list", cls=Verb)
def list_recipes() -> None:
    """List the recipes: name, method and what each is for.

    Example: custos recipe list
    """
    from train.setup.recipe import read_values

    paths = {name: find_recipe(name) for name in recipe_names()}
    rows = [(name, read_values(path)["method"], summary_of(path)) for name, path in paths.items()]
    for line in in_columns([("recipe", "method", "what it is for"), *rows]):
        typer.echo(line)
    typer.echo("\nTrain with one: custos train RECIPE --train TABLE")


@app.command(cls=Verb)
def show(name: Name) -> None:
    """Print a recipe.

    Example: custos recipe show embedded/demo
    """
    typer.echo(find_recipe(name).read_text(encoding="utf-8"), nl=False)


@app.command("keys", cls=Verb)
@with_groups
def explain_keys(
    names: Annotated[list[str] | None, typer.Argument(metavar="[RECIPE] [KEY]...")] = None,
    as_json: AsJson = False,
) -> None:
    """Explain the keys of recipes: what each takes, its default, and what it does.

    Example: custos recipe keys embedded/mine

    Example: custos recipe keys optim.lr

    Options:
        names: Only the keys of this recipe's method, or only these keys. Default: all keys.
    """
    from train.methods import method_of, methods
    from train.setup.recipe import nearest_key, read_values, recipe_keys

    first, *others = names or [""]
    if first in recipe_names() or Path(first).is_file():
        path = find_recipe(first)
        chosen_methods, wanted = [method_of(path, read_values(path))], others
    else:
        chosen_methods, wanted = list(methods().values()), names or []
    ways = " ".join(
        f"{name}: {(of.__doc__ or '').splitlines()[0]}" for name, of in methods().items()
    )
    explained = dict.fromkeys(
        key._replace(meaning=f"{key.meaning} {ways}") if key.name == "method" else key
        for of in chosen_methods
        for key in recipe_keys(of.recipe_class)
    )
    keys = dict.fromkeys(key.name for key in explained)
    found = set() if wanted else set(keys)
    for text in wanted:
        named = {name for name in keys if name == text or name.startswith(f"{text}.")}
        if not named:
            raise CustosError(f"{text}: {nearest_key(text, list(keys))}")
        found |= named
    sections = list(dict.fromkeys(key.name.rpartition(".")[0] for key in explained))
    ordered = sorted(explained, key=lambda key: sections.index(key.name.rpartition(".")[0]))
    chosen = [key for key in ordered if key.name in found]
    if as_json:
        rows = [{name: _plain(text) for name, text in key._asdict().items()} for key in chosen]
        typer.echo(json.dumps(rows, ensure_ascii=False, indent=1))
        return
    for section, members in groupby(chosen, lambda key: key.name.rpartition(".")[0]):
        typer.echo(f"{section or 'the recipe'}:")
        for key in members:
            is_word = key.default in ("required", "empty")
            default = key.default if is_word else f"default {key.default}"
            head = f"{key.name}: {_plain(key.value)}; {_plain(default)}"
            lines = wrap(head, 78, initial_indent="  ", subsequent_indent=INDENT)
            lines += wrap(_plain(key.meaning), 80, initial_indent=INDENT, subsequent_indent=INDENT)
            typer.echo("\n".join(lines))


def _plain(text: str) -> str:
    """Remove Markdown's marks from a text."""
    return re.sub(r"\[(\w+)\]\(#\w+\)", r"\1", text).replace("`", "").replace("\\|", "|")


@app.command(cls=Verb)
@with_groups
def copy(name: Name, file: Path) -> None:
    """Copy a recipe to a file of yours, to change it.

    Example: custos recipe copy embedded/demo my.yaml

    Options:
        file: File to write; it must not exist.
    """
    recipe = find_recipe(name)
    if os.path.lexists(file):
        raise CustosError(f"{file}: this file exists already; name another")
    write_text(file, recipe.read_text(encoding="utf-8"))
    typer.echo(f"{file} written; train with it: custos train {file} --train TABLE")
