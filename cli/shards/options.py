"""Options of grading many files on a Ray cluster."""

from __future__ import annotations

from typing import Annotated

import typer

Ray = Annotated[
    str | None,
    typer.Option(
        help="Grade many files with workers on the Ray cluster at this address (auto: the one that "
        "this machine belongs to), or on this machine alone (local). --in and --out are then "
        "patterns, such as 's3://bucket/answers/*.parquet' and 's3://bucket/verdicts/*.jsonl'. "
        "Default: grade one file here."
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        min=1, help="With --ray: number of workers. Default: as many as its GPUs or CPU cores."
    ),
]
WorkerGpus = Annotated[
    float | None,
    typer.Option(
        min=0,
        help="With --ray: GPUs of each worker; .5 has two workers share one. Default: one, where "
        "there are GPUs and the judge is not behind an address.",
    ),
]
WorkerPrice = Annotated[
    float, typer.Option(min=0, help="With --ray: price of a worker for an hour, to show the cost.")
]
