"""``custos push``: publish a judge on the Hugging Face hub."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.shared.columns import in_columns


def push(
    judge: Annotated[
        str, typer.Argument(help="A run folder, a judge's folder, or a shipped judge.")
    ],
    repository: Annotated[
        str, typer.Argument(metavar="REPO", help="OWNER/NAME on the hub; made if there is none.")
    ],
    private: Annotated[
        bool, typer.Option("--private", help="Make the repository visible to its owner only.")
    ] = False,
    license_id: Annotated[
        str | None,
        typer.Option(
            "--license",
            metavar="ID",
            help="Licence of the judge as the hub spells it, such as apache-2.0. Default: that "
            "of the base model, if custos knows it.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="List the files and show the card's header; no network."),
    ] = False,
    allow_untested: Annotated[
        bool, typer.Option("--allow-untested", help="Publish a judge without a test report too.")
    ] = False,
) -> None:
    """Publish a judge on the Hugging Face hub: adapter, cards, calibration, recipe and figures.

    Checkpoints, logs, rows and hashes of questions stay here. The token is that of 'hf auth login'
    or of HF_TOKEN; HF_ENDPOINT names another hub.

    Example: custos push runs/mine my-name/my-judge --private
    """
    from train.finish.push import check_repository, header_of, published_judge
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
        typer.echo(f"\n{header_of(published.readme)}")
        typer.echo(f"{total} would go to {repository}; nothing was uploaded")
        return
    address = upload(published, repository, private=private)
    typer.echo(f"{total} uploaded to {address}")
