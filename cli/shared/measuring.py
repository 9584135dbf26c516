"""Grading that a stopped command goes on with: files of verdicts, and measurements of a judge."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.shared.options import command_line
from cli.shared.screen import counting_bar, show_skipped
from cli.shared.tables import note_doubts
from clients.kept_verdicts import Grader, KeptVerdict, NumberedRequest, fill_verdicts, partial_file
from data_prep.tables import examples as tables
from data_prep.tables.examples import check_row_pictures
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow
from data_prep.tables.source import open_table
from evaluation.people.annotators import EPSILON
from judging.errors import CustosError, FieldError
from judging.files.csv_rows import row_location
from judging.files.kept_work import KeptFile
from judging.judge import Judge
from judging.types import JudgeRequest, LabelledExample, Verdict

if TYPE_CHECKING:
    from clients.chat_judge import ChatJudge
    from clients.judge_client import JudgeClient
    from evaluation.pairs.paradigms import PairsByScores

RetryFailed = Annotated[
    bool,
    typer.Option(
        "--retry-failed", help="Grade only the failed rows again; without it they stay failed."
    ),
]
Batch = Annotated[
    int, typer.Option(min=1, help="Grade this many rows between two saves to OUT.partial.")
]
CHAT_BATCH = 64
"""Rows of a chat model between two saves: its answers may cost money."""


def fill_showing(
    file: KeptFile[KeptVerdict],
    judge: Grader,
    read: Callable[[], Iterable[NumberedRequest]],
    total: int,
    batch: int,
    retry_failed: bool,
) -> None:
    """Fill a file of verdicts behind a progress bar."""
    num = 0
    with counting_bar("grading", total) as show:
        for num in fill_verdicts(file, judge, read, batch=batch, retry_failed=retry_failed):
            show(num)
    if num != total:
        fault = f"{num} verdicts on {total} rows; has the input changed meanwhile?"
        raise CustosError(f"{file.path}: {fault}")


def show_failed(file: KeptFile[KeptVerdict]) -> None:
    """Print how many rows failed and can be graded again."""
    if num_failed := sum(line.failed for line in file.lines()):
        typer.echo(
            f"{num_failed} failed, kept in {file.path}; --retry-failed grades them again", err=True
        )


def read_examples(
    data: Path,
    mapping: TableMapping,
    allow_dropped: bool = False,
    limit: int | None = None,
    seed: int = 0,
    *,
    check_pictures: bool,
    unique_ids: bool = False,
) -> list[LabelledExample]:
    """Read labelled examples, all or a random few in file order; a missing id is the row number.

    With ``check_pictures`` a picture that cannot be read is an error now, not after the grading.
    """
    bad_rows: dict[int, BadRow] = {}
    rows = tables.read_examples(data, mapping, bad_rows, allow_dropped=allow_dropped)
    show_skipped(row.error for row in bad_rows.values())
    note_doubts(open_table(data, mapping.text_format), mapping)
    if not rows:
        raise CustosError(f"{data}: no rows")
    if check_pictures:
        check_row_pictures(data, rows)
    examples = [
        example if example.id else example.model_copy(update={"id": str(row)})
        for row, example in rows
    ]
    row_by_id: dict[str, int] = {}
    for (row, given), example in zip(rows, examples, strict=True) if unique_ids else ():
        earlier = row_by_id.setdefault(example.id, row)
        if earlier != row:
            number = f"is missing, and the number of the row, {row},"
            name = f"'{given.id}'" if given.id else number
            fault = (
                f"{name} is the id of row {earlier} too; custos compare finds rows by it. Give "
                "every row one of its own or none, and call a column that rows share 'group'"
            )
            raise FieldError("id", fault, row_location(data, row))
    if limit is None or limit >= len(examples):
        return examples
    return [examples[i] for i in sorted(random.Random(seed).sample(range(len(examples)), limit))]


@dataclass(frozen=True)
class KeptMeasurement:
    """Measurement of a judge that a stopped command can go on with.

    It keeps verdicts in files until :meth:`finish`, which follows the writing of the report.
    """

    folder: Path
    """Folder of the output."""
    name: str
    """Beginning of the names of the kept files."""
    batch: int
    retry_failed: bool
    chat_models: Sequence[ChatJudge] = ()
    """Chat models to measure beside the judge."""
    sampled_runs: int = 0
    """Runs that draw the labels of every row anew, for self-consistency; 0 for none."""
    epsilon: float = EPSILON
    """Margin of the alternative annotator test, where several people labelled rows."""

    def report(
        self,
        judge: Judge | JudgeClient,
        examples: Sequence[LabelledExample],
        *,
        zero_shot: bool,
        references: Mapping[str, Sequence[Verdict]] | None = None,
        dataset_sha256: str | None,
        risk: float | None,
        seed: int,
    ) -> tuple[dict[str, Any], list[Verdict]]:
        """Grade examples that have no verdict yet, and report how far the judge agrees with people.

        The examples come from :func:`evaluation.report.evaluate.resolve_examples`. The time in the
        report is that of the judge's own verdicts; it is not known if several runs gave them.
        ``zero_shot`` also grades with the judge's untrained backbone, if it is here; ``references``
        are other judges' verdicts on the same examples. Raise ``NothingScored`` if no row got a
        label, from the judge or from a chat model.
        """
        from evaluation.outcomes import NothingScored, check_scored
        from evaluation.pairs.paradigms import PairsByScores
        from evaluation.ranking.favour import family_of
        from evaluation.report.evaluate import seen_data, uncalibrated_verdicts
        from evaluation.report.report import build_report

        was_stopped = self._file("verdicts").path.exists()
        started = time.perf_counter()
        by_scores = by_scores_of(judge, examples)
        asked = examples
        if risk is not None:
            asked = [each.model_copy(update={"risk": risk}) for each in examples]
        verdicts = self._grade("verdicts", by_scores or judge, asked)
        seconds = None if was_stopped else time.perf_counter() - started
        check_scored(verdicts)
        beside = dict(references or {})
        if zero_shot and isinstance(judge, Judge) and judge.card is not None:
            untrained = judge.load_untrained()
            alike = PairsByScores(untrained, by_scores.paradigm) if by_scores else untrained
            beside["zero_shot"] = self._grade("zero_shot", alike, examples)
        for part, model in self._chat_parts.items():
            answers = self._grade(part, model, examples)
            try:
                check_scored(answers)
            except NothingScored as error:
                raise NothingScored(f"--chat-model {model.name}: {error}") from None
            beside[f"chat {model.name}"] = answers
        # A service does not say what its judges were trained on.
        folder, family = None, None
        if isinstance(judge, Judge):
            folder, family = judge.folder, family_of(judge.backbone.name)
            is_calibrated = judge.calibration is not None
        else:
            names = {verdict.judge_name for verdict in verdicts}
            is_calibrated = any(
                card.get("calibration") for card in judge.judges if card["name"] in names
            )
        has_before = is_calibrated and not by_scores
        report = build_report(
            examples,
            verdicts,
            uncalibrated=uncalibrated_verdicts(examples, verdicts) if has_before else None,
            seen=seen_data(folder, dataset_sha256, examples),
            seconds=seconds,
            command=command_line(),
            references=beside,
            dataset_sha256=dataset_sha256,
            risk=risk,
            drawn=self._drawn_labels(judge, examples) if self.sampled_runs else {},
            epsilon=self.epsilon,
            family=family,
            seed=seed,
        )
        return report, verdicts

    def _drawn_labels(
        self, judge: Judge | JudgeClient, examples: Sequence[LabelledExample]
    ) -> dict[str, list[list[str | None]]]:
        """Draw labels of the judge and of every chat model: by name, then example, then run."""
        from clients.chat_judge import ChatJudge
        from clients.messages import Decoding
        from evaluation.outcomes import full_label
        from evaluation.pairs.paradigms import TEMPERATURE, TOP_P, SampledJudge, sampled_requests

        graders: dict[str, tuple[str, Grader]] = {}
        if isinstance(judge, Judge) and not by_scores_of(judge, examples):
            graders["verdicts"] = judge.name, SampledJudge(judge)
        decoding = Decoding(temperature=TEMPERATURE, top_p=TOP_P)
        for part, model in self._chat_parts.items():
            graders[part] = f"chat {model.name}", ChatJudge(model.server, decoding)
        runs = self.sampled_runs
        requests = sampled_requests([example.request() for example in examples], runs)
        numbered = list(enumerate(requests, 1))
        drawn = {}
        for part, (name, grader) in graders.items():
            verdicts = self._fill(f"drawn-{part}", grader, numbered)
            labels = [full_label(each) if each.label else None for each in verdicts]
            drawn[name] = [labels[i : i + runs] for i in range(0, len(labels), runs)]
        return drawn

    @property
    def _chat_parts(self) -> dict[str, ChatJudge]:
        return {f"chat-{number}": model for number, model in enumerate(self.chat_models, 1)}

    @property
    def _files(self) -> list[KeptFile[KeptVerdict]]:
        """All files: of the judge, its untrained backbone, chat models, and drawn labels."""
        drawn = [f"drawn-{part}" for part in ("verdicts", *self._chat_parts)]
        return [self._file(part) for part in ("verdicts", "zero_shot", *self._chat_parts, *drawn)]

    def _file(self, part: str) -> KeptFile[KeptVerdict]:
        return partial_file(self.folder / f"{self.name}-{part}.jsonl")

    def is_stopped(self) -> bool:
        """Tell whether an earlier run left verdicts."""
        return any(file.path.exists() for file in self._files)

    def finish(self) -> None:
        """Delete the kept files but those that hold failed rows, and print which those are."""
        for file in self._files:
            show_failed(file)
            file.remove_unless_failed()

    def _grade(
        self, part: str, judge: Grader, examples: Sequence[LabelledExample]
    ) -> list[Verdict]:
        """Grade the examples that have no verdict yet; give all verdicts in their order."""
        from evaluation.report.evaluate import grading_order

        numbered = [(index + 1, examples[index].request()) for index in grading_order(examples)]
        return self._fill(part, judge, numbered)

    def _fill(
        self, part: str, judge: Grader, numbered: list[tuple[int, JudgeRequest]]
    ) -> list[Verdict]:
        """Grade what has no verdict yet; give all verdicts in the order of the numbers."""
        file, batch = self._file(part), self.batch
        batch = min(batch, CHAT_BATCH) if "chat-" in part else batch
        fill_showing(file, judge, lambda: numbered, len(numbered), batch, self.retry_failed)
        return [line.verdict for line in sorted(file.lines(), key=lambda line: line.row)]


def by_scores_of(
    judge: Judge | JudgeClient, examples: Sequence[LabelledExample]
) -> PairsByScores | None:
    """Turn a judge of single responses into one of pairs, if the examples are pairs."""
    from evaluation.pairs.paradigms import PairsByScores, scoring_paradigm

    if not isinstance(judge, Judge) or any(len(each.responses) != 2 for each in examples):
        return None
    paradigm = scoring_paradigm(judge.card)
    return PairsByScores(judge, paradigm) if paradigm else None
