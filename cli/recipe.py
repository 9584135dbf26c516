"""``custos recipe``: the training recipes of this installation, listed, shown and copied."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.shared.columns import in_columns
from judging.errors import CustosError
from train.setup.recipe_files import find_recipe, read_header, recipe_names

app = typer.Typer(no_args_is_help=True, help="List, show and copy the recipes that train judges.")

Name = Annotated[str, typer.Argument(help="Recipe of 'custos recipe list', or a file.")]


@app.command("list")
def list_recipes() -> None:
    """List the recipes: name, training script and what each is for.

    Example: custos recipe list
    """
    headers = {name: read_header(find_recipe(name)) for name in recipe_names()}
    rows = [(name, header.script, header.summary) for name, header in headers.items()]
    for line in in_columns([("recipe", "script", "what it is for"), *rows]):
        typer.echo(line)
    typer.echo("\nTrain with one: accelerate launch -m train.SCRIPT --config RECIPE")


@app.command()
def show(name: Name) -> None:
    """Print a recipe.

    Example: custos recipe show embedded/demo
    """
    typer.echo(find_recipe(name).read_text(encoding="utf-8"), nl=False)


@app.command()
def copy(
    name: Name, file: Annotated[Path, typer.Argument(help="File to write; it must not exist.")]
) -> None:
    """Copy a recipe to a file of yours, to change it.

    Example: custos recipe copy embedded/demo my.yaml
    """
    recipe = find_recipe(name)
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(recipe.read_text(encoding="utf-8"))
    except FileExistsError:
        raise CustosError(f"{file}: this file exists already; name another") from None
    script = read_header(recipe).script
    typer.echo(
        f"{file} written; train with it: accelerate launch -m train.{script} --config {file}"
    )
