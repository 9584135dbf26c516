"""Records: what was graded in each shard. A shard that has its record is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from cli.shards.files import Shard, exists, read_files
from cli.shared.verdicts.summary import JudgeTally, Summary
from data_prep.tables.mapping import TableMapping
from judging.fingerprint import digest
from judging.types import FAILURES


class ShardSettings(BaseModel):
    """Settings that the verdicts on a shard depend on, beside its rows and the judge."""

    model_config = ConfigDict(frozen=True)

    mapping: TableMapping
    risk: float | None
    batch: int

    @property
    def key(self) -> str:
        """Return a digest of the settings."""
        return digest(self.model_dump(mode="json"))


class ShardRecord(BaseModel):
    """Record of a graded shard; written when its verdicts are complete."""

    model_config = ConfigDict(frozen=True)

    version: str
    """Version of the source."""
    settings: str
    """Key of the settings."""
    judge: str
    """Digest of the judge."""
    seconds: float
    statuses: Counter[str]
    tallies: list[tuple[str, str, JudgeTally]]
    """Name of a judge, rubric, and what was counted."""
    failure: str | None
    """First row without a verdict, with the reason; ``None`` if all rows have one."""

    @property
    def num_rows(self) -> int:
        """Return the number of rows of the shard."""
        return self.statuses.total()

    @property
    def num_failed(self) -> int:
        """Return the number of rows that have no verdict."""
        return sum(self.statuses[status] for status in FAILURES)


def read_records(shards: Sequence[Shard]) -> dict[str, ShardRecord]:
    """Return the records of those shards that are done and have not changed since, by source."""
    contents = read_files([shard.record for shard in shards])
    records = {}
    for shard in shards:
        try:
            record = ShardRecord.model_validate_json(contents.get(shard.record, b""))
        except ValidationError:  # there is none, or it is damaged
            continue
        if record.version == shard.version and exists(shard.out):
            records[shard.source] = record
    return records


def total(records: Iterable[ShardRecord]) -> Summary:
    """Return the counts of all shards together."""
    summary = Summary(())
    for record in records:
        summary.statuses.update(record.statuses)
        for judge, rubric, counted in record.tallies:
            tally = summary.tallies.setdefault((judge, rubric), JudgeTally())
            tally.labels.update(counted.labels)
            tally.num_to_review += counted.num_to_review
    return summary
