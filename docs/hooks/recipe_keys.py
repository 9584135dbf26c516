"""Reference of the keys of recipes, from the Pydantic models of the methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pydantic import BaseModel

from data_prep.tables.mapping import TableMapping
from docs.hooks.models import field_table, summary
from train.methods import methods
from train.setup.recipe import sections

INTRODUCTION = """\
# Recipe keys

A recipe is a YAML file that describes one training run completely. Its key `method` says how to
train, and each method has keys of its own. This page is made from the classes that check them. A
key that is not here is an error.

A key can be set in the file. It can also be set after the command, with a dot between section and
key, and then wins over the file:

```sh
custos train embedded/demo optim.lr=1e-4
```

`custos recipe keys` prints the same on a terminal.
"""


def recipe_keys_page() -> str:
    """Return the Markdown of the page."""
    known = methods()
    models = {name: method.recipe_class for name, method in known.items()}
    uses = Counter(section for model in models.values() for section in sections(model))
    shared = [section for section, count in uses.items() if count > 1]
    parts = [INTRODUCTION, "## Sections of several methods\n"]
    for section in shared:
        parts += _description(section)
    for name, model in models.items():
        parts.append(f"## {name}\n")
        of_method = sections(model)
        keys = ", ".join(f"`{key}`" for key, part in of_method if (key, part) in shared)
        parts.append(
            f"Its recipes, which `train/{known[name].script}.py` trains with, have the sections "
            f"{keys}, and these keys:\n"
        )
        parts.append(field_table(model, frozenset(key for key, _ in of_method)))
        for section in of_method:
            if section not in shared:
                parts += _description(section)
    # ``data.mapping`` links to it.
    parts += ["## TableMapping\n", f"{summary(TableMapping)}\n", field_table(TableMapping)]
    return "\n".join(parts)


def _description(section: tuple[str, type[BaseModel]]) -> Iterator[str]:
    key, model = section
    yield f"### {key}\n"
    yield f"{summary(model)}\n"
    yield field_table(model, prefix=f"{key}.")
