"""Shards: files of a table, on a disk that all workers see or in a bucket, and their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from pydantic import BaseModel, ConfigDict, ValidationError

from cli.shared.verdicts import OUT_SUFFIXES, JudgeTally, Summary
from data_prep.tables.mapping import TableMapping
from judging.errors import CustosError
from judging.files.records import ROW_SUFFIXES
from judging.fingerprint import digest
from judging.types import FAILURES

RECORDS = "_graded"
"""Folder of the records, beside the verdicts; readers of tables skip names that begin so."""
VERSION_FIELDS = ("size", "mtime", "ETag", "etag", "generation")
"""What file systems tell of a file that changes with its content."""


class Shard(BaseModel):
    """One file of a table, and the files that are made of it; each a path or a URL."""

    model_config = ConfigDict(frozen=True)

    source: str
    version: str
    """Digest of the source's size and time or, in a bucket, of its ETag."""
    out: str
    record: str


def list_shards(source: str, out: str) -> list[Shard]:
    """List the shards that a pattern matches, in the order of their names.

    ``source`` is a path or URL with ``*``, such as ``answers/*.parquet``; the last part of ``out``
    has one ``*``, which stands for a shard's name. Raises ``CustosError`` if nothing matches, a
    pattern is not of this form, its kind of file system is not installed, or two shards would have
    the same output.
    """
    system, path = _open(out)
    folder, name = PurePosixPath(path).parent, PurePosixPath(path).name
    if name.count("*") != 1 or "*" in str(folder) or Path(name).suffix not in OUT_SUFFIXES:
        raise CustosError(
            f"--out '{out}': with --ray, name a file for each shard, such as 'verdicts/*.jsonl'; "
            f"the ending is one of {', '.join(OUT_SUFFIXES)}"
        )
    shards = []
    for url, version in _versions(source).items():
        shard = PurePosixPath(url)
        if shard.suffix not in ROW_SUFFIXES:
            raise CustosError(f"{url}: expected one of {', '.join(ROW_SUFFIXES)}")
        out_name = name.replace("*", shard.stem)
        verdicts = _url(system, folder / out_name)
        record = _url(system, folder / RECORDS / f"{out_name}.json")
        shards.append(Shard(source=url, version=version, out=verdicts, record=record))
    if not shards:
        raise CustosError(f"--in '{source}': no file has such a name")
    [(verdicts, count)] = Counter(shard.out for shard in shards).most_common(1)
    if count > 1:
        raise CustosError(f"--in '{source}': {count} shards would be written to {verdicts}")
    if {shard.source for shard in shards} & _versions(out).keys():
        raise CustosError(f"--out '{out}': these are the files of --in")
    return shards


def _open(url: str) -> tuple[Any, str]:
    """Find the file system of a path or URL, and the path in it."""
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # s3fs, gcsfs and others are packages of their own
        raise CustosError(f"{url}: {error}") from None
    return system, path


def _url(system: Any, path: PurePosixPath | str) -> str:
    return str(path) if is_local(system) else str(system.unstrip_protocol(str(path)))


def is_local(system: Any) -> bool:
    """Tell whether a file system is that of this machine, mounted ones included."""
    return isinstance(system, LocalFileSystem)


def _versions(pattern: str) -> dict[str, str]:
    """Read the version of every file that a pattern matches, in the order of their names."""
    system, path = _open(pattern)
    return {
        _url(system, name): _version(info)
        for name, info in sorted(system.glob(path, detail=True).items())
        if info["type"] == "file"
    }


def _version(info: Mapping[str, Any]) -> str:
    return digest({name: str(info[name]) for name in VERSION_FIELDS if name in info})


def version_of(url: str) -> str:
    """Read the version of a file as it is now."""
    system, path = url_to_fs(url)
    system.invalidate_cache()
    return _version(system.info(path))


def exists(url: str) -> bool:
    """Tell whether there is a file."""
    system, path = url_to_fs(url)
    return bool(system.exists(path))


def delete(url: str) -> None:
    """Delete a file."""
    system, path = url_to_fs(url)
    system.rm_file(path)


def read_files(urls: Sequence[str]) -> dict[str, bytes]:
    """Read those of the files that exist; in a bucket many are read at once."""
    if not urls:
        return {}
    system, _ = url_to_fs(urls[0])
    by_path = {url_to_fs(url)[1]: url for url in urls}
    contents = system.cat(list(by_path), on_error="omit")
    return {by_path[path]: content for path, content in contents.items()}


def fetch(url: str, folder: Path) -> Path:
    """Bring a file to this machine: itself, or a copy in a folder."""
    system, path = url_to_fs(url)
    if is_local(system):
        return Path(path)
    folder.mkdir(exist_ok=True)
    copy = folder / PurePosixPath(path).name
    system.get_file(path, str(copy))
    return copy


@contextmanager
def whole_file(url: str, folder: Path) -> Iterator[Path]:
    """Yield the file to write for a path or URL, which is never seen in parts.

    On a disk this is left to the writer, which has to be one of custos's own. For a bucket the file
    is written to ``folder``, and the object appears when all of it is there.
    """
    system, path = url_to_fs(url)
    if is_local(system):
        yield Path(path)
        return
    folder.mkdir(exist_ok=True)
    local = folder / PurePosixPath(path).name
    yield local
    system.put_file(str(local), path)


class ShardSettings(BaseModel):
    """Settings that the verdicts on a shard depend on, beside its rows and the judge."""

    model_config = ConfigDict(frozen=True)

    mapping: TableMapping
    risk: float | None
    batch: int

    @property
    def key(self) -> str:
        """Hash the settings."""
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
        """Count the rows of the shard."""
        return self.statuses.total()

    @property
    def num_failed(self) -> int:
        """Count the rows that have no verdict."""
        return sum(self.statuses[status] for status in FAILURES)


def read_records(shards: Sequence[Shard]) -> dict[str, ShardRecord]:
    """Read the records of those shards that are done and have not changed since, by source."""
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
    """Add up the counts of all shards."""
    summary = Summary(())
    for record in records:
        summary.statuses.update(record.statuses)
        for judge, rubric, counted in record.tallies:
            tally = summary.tallies.setdefault((judge, rubric), JudgeTally())
            tally.labels.update(counted.labels)
            tally.num_to_review += counted.num_to_review
    return summary
