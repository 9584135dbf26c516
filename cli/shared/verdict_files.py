"""Files of verdicts: JSONL and Parquet."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from judging import CustosError, Verdict
from judging.records import write_records
from judging.types import Pass

OUT_SUFFIXES = (".jsonl", ".parquet")
ROWS_AT_ONCE = 10_000


def check_verdict_file(out: Path, source: Path) -> None:
    """Raise ``CustosError`` unless verdicts can be written to a file that is not the input."""
    if out.suffix not in OUT_SUFFIXES:
        raise CustosError(f"--out '{out}': expected a file ending in {' or '.join(OUT_SUFFIXES)}")
    if out.resolve() == source.resolve():
        raise CustosError(f"--out '{out}': that is the input file")


def write_verdicts(out: Path, verdicts: Iterable[Verdict]) -> None:
    """Write verdicts to a file that appears only when it is complete."""
    if out.suffix == ".jsonl":
        write_records(out, verdicts)
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    unfinished = out.with_name(f".{out.name}.unfinished")
    try:
        with pq.ParquetWriter(unfinished, _parquet_schema(pa)) as writer:
            stream = iter(verdicts)
            while rows := [
                verdict.model_dump() for verdict in itertools.islice(stream, ROWS_AT_ONCE)
            ]:
                writer.write_table(pa.Table.from_pylist(rows, writer.schema))
        os.replace(unfinished, out)
    finally:
        unfinished.unlink(missing_ok=True)


def _parquet_schema(pa: Any) -> Any:
    """Return the columns of a verdict; posteriors are maps, because labels differ between tasks."""
    text, number, flag = pa.string(), pa.float64(), pa.bool_()
    posterior = pa.map_(text, number)
    of_pass = {"posterior": posterior, "stated_confidence": number}
    one_pass = pa.struct({name: of_pass.get(name, text) for name in Pass.model_fields})
    special = {
        **dict.fromkeys(("score", "confidence", "stated_confidence", "label_mass"), number),
        **dict.fromkeys(("needs_review", "truncated_input"), flag),
        "score_range": pa.list_(number),
        "probabilities": posterior,
        "marginals": pa.map_(text, posterior),
        "passes": pa.list_(one_pass),
    }
    return pa.schema({name: special.get(name, text) for name in Verdict.model_fields})
