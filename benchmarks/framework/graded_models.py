"""Graded files of several models: by the names that a user or the files give them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.framework.base import Benchmark
from benchmarks.framework.corrected_by_people import human_scores
from benchmarks.framework.files import Row, error_location, read_file, read_run
from judging.errors import CustosError

_NO_NAMES = ("", "response")
"""Names in files that say nothing of a model."""


@dataclass(frozen=True)
class GradedModel:
    """One model's graded responses."""

    source: str
    """Path of the file."""
    rows: Sequence[Row]
    people: Sequence[Row] = ()
    """Some of the items as people graded them."""
    run: Mapping[str, Any] | None = None
    """Time and cost of grading."""


def read_models(
    benchmark: Benchmark, sources: Sequence[str], people: Mapping[str, str]
) -> dict[str, GradedModel]:
    """Read the graded files of several models.

    Args:
        benchmark: The benchmark that the items belong to.
        sources: Each ``MODEL=FILE``, or a file or a folder that names its models itself. A file
            that names none is called by its own name.
        people: Model to a file of items that people graded.

    Raises:
        CustosError: If a file cannot be read, a row does not fit or a model is named twice.
    """
    models: dict[str, GradedModel] = {}
    for source in sources:
        for name, path, rows in _read_source(benchmark, source):
            if name in models:
                raise CustosError(
                    f"'{source}': there are two models '{name}'; name them with MODEL=FILE"
                )
            labelled = read_people(benchmark, rows, Path(people[name])) if name in people else []
            models[name] = GradedModel(str(path), rows, labelled, read_run(path))
    if unknown := sorted(set(people) - set(models)):
        raise CustosError(f"--people {unknown[0]}: not one of the models {', '.join(models)}")
    return models


def read_items(path: Path) -> list[Row]:
    """Read the rows of a file that must hold some.

    Raises:
        CustosError: If it holds none, or cannot be read.
    """
    rows = list(read_file(path))
    if not rows:
        raise CustosError(f"{path}: no items")
    return rows


def read_people(benchmark: Benchmark, rows: Sequence[Row], path: Path) -> list[Row]:
    """Read items that people graded.

    Args:
        benchmark: The benchmark that the items belong to.
        rows: The items as a judge graded them.
        path: File of some of them as people graded them.

    Raises:
        CustosError: If the file cannot be read, or its items do not fit.
    """
    people = read_items(path)
    with error_location(path):
        human_scores(benchmark, rows, people)
    return people


def _read_source(benchmark: Benchmark, source: str) -> Iterator[tuple[str, Path, list[Row]]]:
    """Yield name, file and rows of every model in a source."""
    given, separator, file = source.partition("=")
    if not separator or Path(source).exists():
        given, file = "", source
    path = Path(file)
    files = benchmark.graded_files(path) if path.is_dir() else {"": path}
    if given and len(files) > 1:
        raise CustosError(f"'{source}': a folder of several models; give it without a name")
    for of_folder, graded in files.items():
        rows = read_items(graded)
        with error_location(graded):
            by_model = benchmark.by_model(rows)
            for rows_of_model in by_model.values():
                benchmark.scores(rows_of_model)
        if len(by_model) > 1 and (given or of_folder):
            raise CustosError(
                f"'{source}': holds the models {', '.join(by_model)}; give the file without a name"
            )
        for name, rows_of_model in by_model.items():
            yield given or of_folder or _own_name(name, graded), graded, rows_of_model


def _own_name(model: str, path: Path) -> str:
    """Return the name that a file gives its model or, if it gives none, that of the file."""
    name = model.removesuffix("_response")
    return path.name.partition(".")[0] if name in _NO_NAMES else name
