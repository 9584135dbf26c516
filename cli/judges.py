"""The verbs about a judge as a whole, and about the models that judges are built on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from cli.shared.measuring import Batch, KeptMeasurement, RetryFailed, read_examples
from cli.shared.options import RivalOptions, command_line, read_assignments, with_groups
from cli.shared.outputs import OutFolder, claim, own
from cli.shared.screen import in_columns
from cli.shared.tables import (
    TABLE_FORMATS,
    file_digest,
    read_valid_requests,
    trained_tasks,
    with_only_task,
)
from data_prep.tables.mapping import TableMapping
from evaluation.report.text import number, with_interval
from judging.errors import CustosError
from judging.files.kept_work import locked
from judging.files.records import known_object
from judging.judge import Judge
from judging.judge.card import CARD_FILE, SHIPPED, shipped_judges
from judging.models.fetched import EMBEDDED, EMBEDDED_2, EMBEDDED_BASE, LICENSE, PUBLISHED, is_made
from judging.models.gguf_files import NAMED
from judging.scoring.ask_model import CHUNK

HEADINGS = ("judge", "tasks", "items", "accuracy", "kappa", "ECE", "best baseline")
NOTE = (
    "Accuracy: agreement with the labels of held-out items, with its 95 % interval.\n"
    "ECE: how far the judge's confidence is from its accuracy, on average. Chance: what a\n"
    "calibrated judge would show on these items, on average and in 95 % of cases at most.\n"
    "Best baseline: the most accurate of the graders that its report has beside it.\n"
    "'custos judges NAME' says which items these were and what the judge cannot do."
)


@with_groups
def judges(name: Annotated[str | None, typer.Argument()] = None) -> None:
    """List the shipped judges with what was measured of them, or show the card of one.

    Example: custos judges embedded-qs

    Options:
        name: A shipped judge. Default: a table of all.
    """
    names = shipped_judges()
    if name is None:
        typer.echo("\n".join(in_columns([HEADINGS, *map(measured, names)])) + f"\n\n{NOTE}")
        return
    if name not in names:
        raise CustosError(f"'{name}': no shipped judge; there are {', '.join(names)}")
    # What users need: everything above how it was made.
    typer.echo(_read(name, "README.md").partition("\nMade by")[0].rstrip())


def measured(name: str) -> tuple[str, ...]:
    """Fill the cells of a judge's row from its card and its report."""
    card = json.loads(_read(name, CARD_FILE))
    report = known_object(SHIPPED / name / "report.json")
    if not report:  # calibrated again since it was measured
        return name, ", ".join(card["tasks"]), *"-----"
    metrics = report["metrics"]
    accuracy = {name: row["accuracy"]["value"] for name, row in report["baselines"].items()}
    best = max(accuracy, key=lambda each: float(accuracy[each]))
    return (
        name,
        ", ".join(card["tasks"]),
        str(report["n"]),
        with_interval(metrics["accuracy"]),
        number(metrics["kappa"]["value"]),
        with_interval(metrics["ece"]),
        f"{best} {number(accuracy[best])}",
    )


def _read(name: str, file: str) -> str:
    path = SHIPPED / name / file
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        raise CustosError(f"{path}: this file of the judge is missing") from None


@with_groups
def card(
    run: str,
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            help=f"NAME=FILE: measure on the labelled examples of this {TABLE_FORMATS}, whose "
            "columns are called like our fields. May be repeated.",
        ),
    ],
    out: OutFolder,
    *,
    attacks: Path | None = None,
    zero_shot: bool = True,
    limit: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    retry_failed: RetryFailed = False,
    batch: Batch = CHUNK,
    rival_options: RivalOptions,
) -> None:
    """Measure a judge on several data sets and write its reliability card.

    For every data set the card holds the agreement with people beside baselines, figures by label
    and slice, calibration, what can be kept at a risk of 5 %, and the time. It names the rubrics of
    the judge that were not measured. The page of judges of custos serve shows the card that lies in
    the judge's folder.

    Verdicts are kept in OUT while the command runs. If it is stopped, the same command continues
    where it stopped. They stay as long as rows have failed, and --retry-failed grades these again.

    Example: custos card runs/mine --data nq=data/evouna/test.jsonl --data mine=data/mine/test.jsonl
    --out runs/mine

    Options:
        run: Run folder or shipped judge.
        out: Write reliability.json and reliability.md to this folder. If it holds a README.md, as
            the judge's own folder does, that gets the card as a section.
        attacks: Show the figures of this attacks.json too. Default: none.
        zero_shot: Measure the judge's own backbone, untrained, beside it.
        limit: Take this many examples of each, drawn by --seed. Default: all.
        seed: Seed of the intervals and of --limit.
    """
    from evaluation.outcomes import NothingScored
    from evaluation.report.evaluate import resolve_examples
    from evaluation.report.reliability import (
        JSON,
        MARKDOWN,
        Attacks,
        Measured,
        make_card,
        read_readme,
        risk_to_state,
        write_card,
    )

    named = read_assignments(data, "--data", "NAME=FILE, each once", once=True)
    files = {name: Path(file) for name, file in named.items()}
    rivals = rival_options.read()
    kept = {
        name: KeptMeasurement(out, f"reliability-{number}", batch, retry_failed, rivals)
        for number, name in enumerate(files, 1)
    }

    def is_own(folder: Path) -> bool:
        is_stopped = any(measurement.is_stopped() for measurement in kept.values())
        return is_stopped or own(("judge", "data", "not_measured"), JSON)(folder)

    claim(out, is_own, names=(JSON, MARKDOWN))
    read_readme(out)  # One that cannot be read is an error now, not after the grading.
    known_attacks = Attacks.load(attacks) if attacks else None
    tasks, examples = trained_tasks([run]), {}
    for name, file in files.items():
        in_table = with_only_task(TableMapping(), file, tasks)
        examples[name] = read_examples(file, in_table, limit=limit, seed=seed, check_pictures=True)
    hashes = {name: file_digest(file) for name, file in files.items()}
    loaded = Judge.load(run)
    measured: dict[str, Measured] = {}
    with locked(out / JSON):
        for name, measurement in kept.items():
            rows = resolve_examples(loaded, examples[name])
            try:
                report, verdicts = measurement.report(
                    loaded,
                    rows,
                    zero_shot=zero_shot,
                    dataset_sha256=hashes[name],
                    risk=risk_to_state(loaded, rows),
                    seed=seed,
                )
            except NothingScored as error:
                raise NothingScored(f"data set '{name}': {error}") from None
            measured[name] = rows, verdicts, report
        made = make_card(loaded, measured, command=command_line(), attacks=known_attacks, seed=seed)
        write_card(made, out)
        for measurement in kept.values():
            measurement.finish()
    for name, data_set in made["data"].items():
        accuracy = with_interval(data_set["metrics"]["accuracy"])
        typer.echo(f"{name}: {data_set['n']} rows, accuracy {accuracy}")
    for rubric in made["not_measured"]:
        typer.echo(f"not measured: {rubric}")
    typer.echo(f"card: {out / MARKDOWN}")


@with_groups
def export(judge: str, merged: OutFolder, rows: Path | None = None) -> None:
    """Export a judge as a checkpoint that transformers and vLLM load without custos.

    The folder has the files of the backbone as they were published, but for its weights, their
    format, and the judge's limits on pictures. Card, calibration and recipe are in the folder
    judge. Before the folder appears, the log-probabilities of all labels are computed through
    transformers in float32 and compared with the judge's own.

    Example: custos export embedded-qs --merged runs/embedded-qs-merged

    Options:
        judge: Run folder or shipped judge.
        merged: Write the checkpoint to this new folder, with the adapter merged into the weights.
        rows: Compare the checkpoint with the judge on the rows of this file. Default: a row for
            every rubric of the judge, and one with a picture.
    """
    from judging.judge.export import export_merged
    from judging.judge.notes import KNOWS_NOTHING

    requests = read_valid_requests(rows) if rows else []
    if rows and not requests:
        raise CustosError(f"{rows}: no rows; give some, or leave --rows out")
    done = export_merged(judge, merged, requests)
    parity = done.parity
    typer.echo(
        f"{merged}: {done.name} on {done.backbone}, merged, {done.dtype}, {done.num_bytes:,} bytes"
    )
    typer.echo(
        f"label log-probabilities through transformers ({parity.model_class}, "
        f"float32): at most {parity.largest:.1e} nats from the judge's "
        f"({parity.num_scores} labels of {parity.num_rows} rows)"
    )
    if done.random_weights:
        typer.echo(KNOWS_NOTHING)


@with_groups
def push(
    judge: str,
    repository: Annotated[str, typer.Argument(metavar="REPO")],
    private: Annotated[bool, typer.Option("--private")] = False,
    license_id: Annotated[str | None, typer.Option("--license", metavar="ID")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
    allow_untested: Annotated[bool, typer.Option("--allow-untested")] = False,
) -> None:
    """Publish a judge on the Hugging Face hub: adapter, cards, calibration, recipe and figures.

    Checkpoints, logs, rows and hashes of questions stay here. The token is that of 'hf auth login'
    or of HF_TOKEN; HF_ENDPOINT names another hub.

    Example: custos push runs/mine my-name/my-judge --private

    Options:
        judge: A run folder, a judge's folder, or a shipped judge.
        repository: OWNER/NAME on the hub; made if there is none.
        private: Make the repository visible to its owner only.
        license_id: Licence of the judge as the hub spells it, such as apache-2.0. Default: that of
            the base model, if custos knows it.
        dry_run: List the files and show the card's header; no network.
        allow_untested: Publish a judge without a test report too.
    """
    from train.finish.push import check_repository, published_judge
    from train.finish.push import push as upload

    check_repository(repository)
    published = published_judge(judge, license_id=license_id, allow_untested=allow_untested)
    for caution in published.cautions:
        typer.echo(f"caution: {caution}", err=True)
    sizes = published.sizes()
    total = f"{len(sizes)} files, {sum(sizes.values()):,} bytes"
    if dry_run:
        rows = [(name, f"{size:,}".rjust(14)) for name, size in sizes.items()]
        typer.echo("\n".join(in_columns([("file", "bytes".rjust(14)), *rows])))
        typer.echo(f"\n{published.header}")
        typer.echo(f"{total} would go to {repository}; nothing was uploaded")
        return
    address = upload(published, repository, private=private)
    typer.echo(f"{total} uploaded to {address}")


BACKBONE_HEADINGS = ("backbone", "parameters", "licence", "made of", "download", "here")
SMOKE_QUESTION = "What is the capital of France?"
MAX_SMOKE_TOKENS = 24


@with_groups
def backbone(
    name: Annotated[str, typer.Argument()] = "embedded",
    smoke: Annotated[bool, typer.Option("--smoke")] = False,
) -> None:
    """Fetch a backbone if it is missing, load it, and print what it is.

    A backbone is the model that judges are trained on. Those of 'custos backbones' are fetched and
    converted once, into the folder that the variable CUSTOS_CACHE names, or else into
    ~/.cache/custos.

    Example: custos backbone --smoke

    Options:
        name: A name in 'custos backbones', a folder, a GGUF file, or the name of a Qwen model on
            the Hugging Face hub.
        smoke: Have the backbone answer one question.
    """
    from judging.models.backbones import load_backbone
    from judging.models.devices import computed_in

    loaded = load_backbone(name)
    config = loaded.model.config
    facts = {
        "name": loaded.name,
        "version": loaded.version,
        "architecture": config.model_type,
        "parameters": f"{sum(weight.numel() for weight in loaded.model.parameters()):,}",
        "vocabulary": f"{config.get_text_config().vocab_size:,}",
        "dtype": computed_in(loaded.model),
        "device": str(loaded.model.device),
        "folder": config.name_or_path,
    }
    for fact, value in facts.items():
        typer.echo(f"{fact:<13}{value}")
    if smoke:
        conversation = [{"role": "user", "content": [{"type": "text", "text": SMOKE_QUESTION}]}]
        prompt = loaded.processor.apply_chat_template(
            conversation,
            tokenize=True,
            return_dict=True,
            add_generation_prompt=True,
            processor_kwargs={"return_tensors": "pt"},
        ).to(loaded.model.device)
        tokens = loaded.model.generate(**prompt, max_new_tokens=MAX_SMOKE_TOKENS, do_sample=False)
        answer = loaded.tokenizer.decode(
            tokens[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True
        )
        typer.echo(f"\n{SMOKE_QUESTION}\n{answer.strip()}")


def backbones() -> None:
    """List the backbones that have a name here: what they are, and whether they are here.

    One that is not here is fetched when it is first used. Any checkpoint of a supported family can
    be used too, by its folder, its name on the hub or its GGUF file.

    Example: custos backbones
    """
    embedded = ("135M", LICENSE, EMBEDDED_BASE)
    rows = [
        *((name, *embedded, PUBLISHED) for name in (EMBEDDED, EMBEDDED_2)),
        *(
            (name, f"{each.parameters / 1e6:,.0f}M", each.license, each.base_model, each.file)
            for name, each in NAMED.items()
        ),
    ]
    cells = [
        (*texts, f"{file.size / 1e6:,.0f} MB", "yes" if is_made(file.version) else "no")
        for *texts, file in rows
    ]
    for line in in_columns([BACKBONE_HEADINGS, *cells]):
        typer.echo(line)
