"""``custos recipe``: the training recipes of this installation and their keys."""

from __future__ import annotations

import json
import re
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from cli.shared.options import AsJson, with_groups
from cli.shared.outputs import Verb
from cli.shared.screen import in_columns
from judging.errors import CustosError
from train.setup.recipe import find_recipe, recipe_names, summary_of

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
    explained = dict.fromkeys(key for of in chosen_methods for key in recipe_keys(of.recipe_class))
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
    try:
        with file.open("x", encoding="utf-8") as target:
            target.write(recipe.read_text(encoding="utf-8"))
    except FileExistsError:
        raise CustosError(f"{file}: this file exists already; name another") from None
    typer.echo(f"{file} written; train with it: custos train {file} --train TABLE")
