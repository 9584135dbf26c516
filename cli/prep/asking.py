"""The verbs of ``custos prep`` that ask models, for texts or for labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from cli.shared.options import (
    MaxTokens,
    PriceOptions,
    RequestOptions,
    ServerUrl,
    Temperature,
    Writer,
    command_line,
    with_groups,
)
from cli.shared.outputs import output_folder, spare
from cli.shared.screen import check_skipped, job_bar, show_counts, show_skipped, show_spent
from cli.shared.tables import AllowDropped, read_valid_requests
from clients.messages import Decoding
from data_prep.construction.charthal import (
    FILES,
    generate_questions,
    load_charts,
    load_charxiv,
    sample_charts,
)
from data_prep.construction.critiques import CONVERSATIONS, write_critiques
from data_prep.construction.model_writer import ROWS, ModelWriter, load_rows, run_step
from data_prep.construction.responses import (
    VERDICTS,
    Question,
    model_folder,
    write_responses,
    write_verdicts,
)
from data_prep.construction.steps.base import STEPS, StepRow
from data_prep.sources.conversations import PAIR_TASK
from data_prep.splits.manifest import MANIFEST_NAME, describe_file, load_generic
from judging.errors import CustosError, FieldError
from judging.files.records import known_object
from judging.tasks import get_task

RowT = TypeVar("RowT", bound=StepRow)
Rows = Annotated[
    Path, typer.Option("--in", help="Read this JSONL, JSON, Parquet, CSV or TSV file of rows.")
]
OutFolder = Annotated[
    Path,
    typer.Option(
        callback=output_folder, help="Write rows, rejects and manifest.json to this folder."
    ),
]


@dataclass(frozen=True)
class Asking(PriceOptions, RequestOptions):
    """How models on a server are asked: the key, limits, and what tokens cost."""

    @contextmanager
    def writers(
        self,
        url: str,
        outs: Iterable[tuple[str, Path]],
        source: Mapping[str, Any],
        temperature: float | None,
        max_tokens: int | None = None,
    ) -> Iterator[list[ModelWriter]]:
        """Make a writer of what each model replies, to its own folder, behind one progress bar.

        ``source`` describes the rows, for the manifest.
        """
        prices = self.read()
        decoding = Decoding(temperature=temperature, max_tokens=max_tokens)
        settings = source, command_line()
        with job_bar(prices) as show:
            yield [
                ModelWriter(self.server(url, model), decoding, prices, out, *settings, show)
                for model, out in outs
            ]


def _read_rows(
    path: Path, row_type: type[RowT], out: Path, *, allow_dropped: bool
) -> tuple[list[RowT], dict[str, Any]]:
    """Read rows that a model writes about, and describe their file for the manifest."""
    spare([path], out, [ROWS])
    bad_rows: list[str] = []
    rows = load_rows(path, row_type, bad_rows)
    check_skipped(path, bad_rows, allow_dropped=allow_dropped)
    return rows, {**describe_file(path), "bad_rows": len(bad_rows)}


def show_rejected(rejected: Mapping[str, int], out: Path) -> None:
    """Print how many rows were rejected for which reason."""
    if rejected:
        reasons = ", ".join(f"{count} {reason}" for reason, count in rejected.items())
        typer.echo(f"rejected: {sum(rejected.values())} ({reasons}): {out / 'rejects.jsonl'}")


@with_groups
def step(
    name: str,
    rows: Rows,
    base_url: ServerUrl,
    model: Writer,
    out: OutFolder,
    *,
    asking: Asking,
    temperature: Temperature = None,
    max_tokens: MaxTokens = 4096,
    allow_dropped: AllowDropped = False,
) -> None:
    """Have a model do one step of a construction on every row; write the rows that come of it.

    The rows are in OUT/rows.jsonl, for the next step. The model replies in JSON, and each reply is
    checked against the step's schema; one that does not fit is asked for once more. Rows without a
    usable reply are listed in OUT/rejects.jsonl. If the command is stopped, the same command
    continues where it stopped and sends failed requests again.

    Example: custos prep construct step simplevqa-rewrite --in seeds.jsonl
    --base-url https://api.openai.com/v1 --model gpt-4o --key-env OPENAI_API_KEY --out data/new

    Options:
        name: Name of the step; see custos prep construct steps.
    """
    chosen = STEPS.get(name)
    loaded, source = _read_rows(rows, chosen.row_type, out, allow_dropped=allow_dropped)
    with asking.writers(base_url, [(model, out)], source, temperature, max_tokens) as [writer]:
        manifest = run_step(chosen, loaded, writer)
    counts = manifest["counts"]
    show_rejected(manifest["rejected"], out)
    show_spent(manifest)
    typer.echo(f"{counts['in']} rows in, {counts['out']} rows out: {out / 'rows.jsonl'}")


@with_groups
def respond(
    rows: Rows,
    base_url: ServerUrl,
    models: Annotated[list[str], typer.Option("--model")],
    out: OutFolder,
    task: str | None = None,
    *,
    asking: Asking,
    temperature: Temperature = None,
    max_tokens: Annotated[int | None, typer.Option(min=1)] = None,
    allow_dropped: AllowDropped = False,
) -> None:
    """Have several models answer every question of a file.

    A row has the fields id and question, and may have references (or answer), reference_mode,
    choices, images, task, variant and metadata. All responses go to OUT/rows.jsonl, ready for
    custos grade and for people's sheets; each model's replies are kept in a folder of its own. If
    the command is stopped, the same command continues where it stopped. For models on another
    server, run it again with another --out and join the two files of rows.

    Example: custos prep construct respond --in questions.jsonl --base-url http://127.0.0.1:8000/v1
    --model model-a --model model-b --out data/answers

    Options:
        models: Ask this model on the server. May be repeated.
        task: Judge the responses under this task. Default: the row's, or hieval-qs.
        max_tokens: Stop a response after this many tokens; metadata.cut_off marks it. Default: no
            limit.
    """
    questions, source = _read_rows(rows, Question, out, allow_dropped=allow_dropped)
    if task is not None:
        get_task(task)
        questions = [question.model_copy(update={"task": task}) for question in questions]
    folders = [(model, model_folder(out, model)) for model in models]
    with asking.writers(base_url, folders, source, temperature, max_tokens) as writers:
        manifest = write_responses(questions, writers, out, source, command_line())
    for model, account in manifest["models"].items():
        typer.echo(f"{model}: {account['counts']['out']} of {account['counts']['in']} answered")
        show_rejected(account["rejected"], model_folder(out, model))
        show_spent(account)
    typer.echo(f"{manifest['counts']['responses']} responses: {out / 'rows.jsonl'}")


@with_groups
def verdicts(
    rows: Rows,
    out: OutFolder,
    base_url: str | None = None,
    models: Annotated[list[str] | None, typer.Option("--model")] = None,
    graded: list[Path] | None = None,
    *,
    asking: Asking,
) -> None:
    """Collect the labels that several judges give the same responses.

    Chat models are told the instruction of each row's task and asked at temperature 0. The labels
    go to OUT/verdicts.json, in the shape that --verdicts of custos prep table and custos prep
    hieval take: they keep the rows on which enough judges differ from people. If the command is
    stopped, the same command continues where it stopped.

    Example: custos prep construct verdicts --in data/labels/rows.jsonl --base-url
    http://127.0.0.1:8000/v1 --model judge-a --model judge-b --out data/judges

    Options:
        base_url: Ask the OpenAI-compatible server at this address. Default: ask none, take --graded
            files alone.
        models: Ask this model on the server. May be repeated. Default: none.
        graded: Take the labels of this file of custos grade too: one more judge. May be repeated.
            Default: none.
    """
    if (base_url is None) != (not models):
        raise CustosError("--base-url and --model go together; give both or neither")
    if not models and not graded:
        raise CustosError("name a judge: --base-url with --model, or --graded")
    requests = read_valid_requests(rows)
    counted = Counter(request.id for request in requests)
    if twice := next((name for name, count in counted.items() if count > 1), None):
        raise CustosError(f"{rows}: id '{twice}' occurs twice")
    source = describe_file(rows)
    folders = [(model, model_folder(out, model)) for model in models or ()]
    with asking.writers(base_url or "", folders, source, temperature=0.0) as judges:
        manifest = write_verdicts(requests, judges, graded or (), out, source, command_line())
    for judge, num_missing in manifest["without_label"].items():
        typer.echo(f"{judge}: {len(requests) - num_missing} of {len(requests)} labels")
        if folder := dict(folders).get(judge):
            show_spent(known_object(folder / MANIFEST_NAME))
    typer.echo(f"{len(manifest['without_label'])} judges: {out / VERDICTS}")


@with_groups
def critiques(
    source: Annotated[Path, typer.Option()],
    base_url: ServerUrl,
    model: Writer,
    out: OutFolder,
    *,
    asking: Asking,
    temperature: Temperature = None,
    max_tokens: MaxTokens = 2048,
    show_reasons: Annotated[bool, typer.Option("--show-reasons")] = False,
) -> None:
    """Have a strong model write the critiques that lead to what people preferred.

    Rows without a critique that ends in people's label are listed in OUT/rejects.jsonl. If the
    command is stopped, the same command continues where it stopped and sends failed requests again.

    Example: custos prep critiques --source pairs.jsonl --base-url https://api.openai.com/v1
    --model gpt-4o --key-env OPENAI_API_KEY --out data/critiques

    Options:
        source: Read this JSONL, JSON or Parquet file of truthful-pair rows with labels.
        show_reasons: Show the model people's scores and reasons too. In the paper it sees their
            label and the faults that they marked.
    """
    spare([source], out, [ROWS, CONVERSATIONS])
    bad_rows: list[str] = []
    task, pairs = get_task(PAIR_TASK), []
    for example in load_generic(source, bad_rows):
        try:
            if example.task != PAIR_TASK:
                raise FieldError("task", f"expected '{PAIR_TASK}', got '{example.task}'")
            task.check(example)
            task.target(example)
            if ruling := task.rule(example):
                raise CustosError(ruling.message)
        except CustosError as error:
            bad_rows.append(f"row '{example.id}': {error}")
            continue
        pairs.append(example)
    show_skipped(bad_rows)
    if not pairs:
        raise CustosError(f"{source}: there are no labelled rows of task '{PAIR_TASK}'")
    read = {**describe_file(source), "bad_rows": len(bad_rows)}
    with asking.writers(base_url, [(model, out)], read, temperature, max_tokens) as [writer]:
        manifest = write_critiques(pairs, writer, show_reasons=show_reasons)
    for name, title in (("counts", "kept"), ("rejected", "rejected")):
        counts = manifest[name]
        listed = ", ".join(f"{count} {reason}" for reason, count in counts.items())
        typer.echo(f"{title}: {sum(counts.values())}{f' ({listed})' if counts else ''}")
    show_spent(manifest)
    typer.echo(f"{out}")


@with_groups
def charthal_generate(
    charts: Annotated[Path, typer.Option()],
    count: Annotated[int, typer.Option(min=1)],
    base_url: ServerUrl,
    model: Writer,
    out: Annotated[Path, typer.Option(callback=output_folder)],
    seed: Annotated[int, typer.Option(min=0)] = 0,
    *,
    asking: Asking,
    temperature: Temperature = None,
    max_tokens: MaxTokens = 4096,
    allow_dropped: AllowDropped = False,
) -> None:
    """Sample charts and have a model write a question for every cell.

    Charts of one and two subplots come 3:2, disciplines in proportion, and every chart type stays
    in. If the command is stopped, the same command continues where it stopped and sends failed
    requests again.

    Example: custos prep charthal-construct generate --charts charts.jsonl --count 100
    --base-url https://api.openai.com/v1 --model o4-mini --key-env OPENAI_API_KEY --out data/mine

    Options:
        charts: Read this JSONL, JSON or Parquet file of charts with the fields id, images,
            num_subplots, discipline and chart_type, or the validation charts of this clone of
            CharXiv's repository, which ChartHal samples from (images.zip unpacked in images/).
        count: Sample this many charts; each gets 12 questions.
        out: Write questions, pictures and manifest.json to this folder.
        seed: Another seed samples other charts.
    """
    bad_rows: list[str] = []
    source: dict[str, Any]
    if charts.is_dir():
        pool = load_charxiv(charts)
        source = {"charxiv": [describe_file(charts / name) for name in FILES]}
    else:
        pool, source = load_charts(charts, bad_rows), {**describe_file(charts)}
    check_skipped(charts, bad_rows, allow_dropped=allow_dropped)
    source |= {"bad_rows": len(bad_rows), "seed": seed}
    with asking.writers(base_url, [(model, out)], source, temperature, max_tokens) as [writer]:
        manifest = generate_questions(sample_charts(pool, count, seed), writer)
    show_counts("cell", "questions", manifest["counts"])
    show_spent(manifest)
    rejected = sum(manifest["rejected"].values())
    written = sum(manifest["counts"].values())
    typer.echo(f"{written} questions on {manifest['charts']} charts, {rejected} rejected: {out}")
