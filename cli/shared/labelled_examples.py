"""Labelled examples of a user's table, read and graded, for the verbs that measure a judge."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli.shared.bad_rows import show_dropped
from cli.shared.grading import fill_showing, show_failed
from cli.shared.request_rows import note_doubts
from clients.kept_verdicts import Grader, KeptVerdict, partial_file
from data_prep.tables import examples as tables
from data_prep.tables.mapping import TableMapping
from data_prep.tables.reader import BadRow
from evaluation.declared_labels import check_labels
from evaluation.people.alternative import EPSILON
from judging.errors import CustosError, FieldError
from judging.files.csv_rows import row_location
from judging.files.kept_work import KeptFile
from judging.judge import Judge
from judging.types import JudgeRequest, LabelledExample, Verdict

if TYPE_CHECKING:
    from clients.chat_judge import ChatJudge
    from clients.judge_client import JudgeClient
    from evaluation.pairs.paradigms import PairsByScores

CHAT_BATCH = 64
"""Rows of a chat model between two saves: its answers may cost money."""


def read_examples(
    data: Path,
    mapping: TableMapping,
    allow_dropped: bool,
    limit: int | None,
    seed: int,
    *,
    check_pictures: bool,
    unique_ids: bool = False,
) -> list[LabelledExample]:
    """Read labelled examples, all or a random few in file order; a missing id is the row number.

    With ``check_pictures`` a picture that cannot be read is an error now, not after the grading.

    Raises:
        CustosError: If there are no rows; if a row cannot be used, as an evaluation leaves out
            nothing unless it is allowed; with ``unique_ids``, if two rows have one id.
    """
    bad_rows: dict[int, BadRow] = {}
    rows = tables.read_examples(data, mapping, bad_rows, allow_dropped=allow_dropped)
    show_dropped(bad_rows)
    note_doubts(data, mapping)
    if not rows:
        raise CustosError(f"{data}: no rows")
    if check_pictures:
        tables.check_row_pictures(data, rows)
    examples = [
        example if example.id else example.model_copy(update={"id": str(row)})
        for row, example in rows
    ]
    if unique_ids:
        _check_ids(data, rows)
    check_labels(examples, str(data), lambda index: f"row {rows[index][0]}")
    if limit is None or limit >= len(examples):
        return examples
    return [examples[i] for i in sorted(random.Random(seed).sample(range(len(examples)), limit))]


def _check_ids(data: Path, rows: Sequence[tuple[int, LabelledExample]]) -> None:
    """Raise ``FieldError`` if two rows have one id, given or by their number."""
    row_by_id: dict[str, int] = {}
    for row, example in rows:
        name = example.id or str(row)
        earlier = row_by_id.setdefault(name, row)
        if earlier != row:
            given = f"'{name}'" if example.id else f"is missing, and the number of the row, {name},"
            raise FieldError(
                "id",
                f"{given} is the id of row {earlier} too; custos compare finds rows by it. Give "
                "every row one of its own or none, and call a column that rows share 'group'",
                row_location(data, row),
            )


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
        references: Mapping[str, Sequence[Verdict]],
        command: str,
        dataset_sha256: str | None,
        risk: float | None,
        seed: int,
    ) -> tuple[dict[str, Any], list[Verdict]]:
        """Grade examples that have no verdict yet, and report how far the judge agrees with people.

        Args:
            judge: Judge to measure, or a service. The time in the report is that of its own
                verdicts; it is not known if several runs gave them.
            examples: Examples from :func:`evaluation.report.evaluate.resolve_examples`.
            zero_shot: Whether to grade with the judge's untrained backbone too, if it is here.
            references: Other judges' verdicts on the same examples, by name.
            command: Command as typed, for the report.
            dataset_sha256: Hash of the file.
            risk: Share of wrong verdicts among those without a review that the report measures.
            seed: Seed of the intervals.

        Raises:
            CustosError: If the kept verdicts are on something else.
            NothingScored: If no row got a label, from the judge or from a chat model.
        """
        from evaluation.outcomes import NothingScored, check_scored
        from evaluation.pairs.paradigms import PairsByScores
        from evaluation.ranking.favour import family_of
        from evaluation.report.evaluate import at_risk, seen_data, uncalibrated_verdicts
        from evaluation.report.report import build_report

        of_judge, of_backbone, *of_chat_models = map(self._file, self._parts)
        was_stopped, started = of_judge.path.exists(), time.perf_counter()
        by_scores = by_scores_of(judge, examples)
        verdicts = self._grade(of_judge, by_scores or judge, at_risk(examples, risk), self.batch)
        seconds = None if was_stopped else time.perf_counter() - started
        check_scored(verdicts)
        beside = dict(references)
        if zero_shot and isinstance(judge, Judge) and judge.card is not None:
            untrained = judge.load_untrained()
            alike = PairsByScores(untrained, by_scores.paradigm) if by_scores else untrained
            beside["zero_shot"] = self._grade(of_backbone, alike, examples, self.batch)
        for file, model in zip(of_chat_models, self.chat_models, strict=True):
            answers = self._grade(file, model, examples, min(self.batch, CHAT_BATCH))
            try:
                check_scored(answers)
            except NothingScored as error:
                raise NothingScored(f"--chat-model {model.name}: {error}") from None
            beside[f"chat {model.name}"] = answers
        # A service does not say what its judges were trained on.
        folder = judge.folder if isinstance(judge, Judge) else None
        is_calibrated = not by_scores and _is_calibrated(judge, verdicts)
        report = build_report(
            examples,
            verdicts,
            uncalibrated=uncalibrated_verdicts(examples, verdicts) if is_calibrated else None,
            seen=seen_data(folder, dataset_sha256, examples),
            seconds=seconds,
            command=command,
            references=beside,
            dataset_sha256=dataset_sha256,
            risk=risk,
            drawn=self._drawn_labels(judge, examples) if self.sampled_runs else {},
            epsilon=self.epsilon,
            family=family_of(judge.backbone.name) if isinstance(judge, Judge) else None,
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
        for part, model in zip(self._chat_parts, self.chat_models, strict=True):
            graders[part] = f"chat {model.name}", ChatJudge(model.server, decoding)
        runs = self.sampled_runs
        requests = sampled_requests([example.request() for example in examples], runs)
        numbered = list(enumerate(requests, 1))
        drawn = {}
        for part, (name, grader) in graders.items():
            batch = self.batch if part == "verdicts" else min(self.batch, CHAT_BATCH)
            verdicts = self._fill(self._file(f"drawn-{part}"), grader, numbered, batch)
            labels = [full_label(each) if each.label else None for each in verdicts]
            drawn[name] = [labels[i : i + runs] for i in range(0, len(labels), runs)]
        return drawn

    def is_stopped(self) -> bool:
        """Return whether an earlier run left verdicts."""
        return any(self._file(part).path.exists() for part in self._all_parts)

    def finish(self) -> None:
        """Delete the kept files but those that hold failed rows, and print which those are."""
        for file in map(self._file, self._all_parts):
            show_failed(file)
            file.remove_unless_failed()

    @property
    def _parts(self) -> list[str]:
        """Return names for the judge, for its untrained backbone and for every chat model."""
        return ["verdicts", "zero_shot", *self._chat_parts]

    @property
    def _all_parts(self) -> list[str]:
        """Return names for all files: also for the labels that are drawn."""
        drawn = ("verdicts", *self._chat_parts)
        return [*self._parts, *(f"drawn-{part}" for part in drawn)]

    @property
    def _chat_parts(self) -> list[str]:
        return [f"chat-{number}" for number, _ in enumerate(self.chat_models, 1)]

    def _file(self, part: str) -> KeptFile[KeptVerdict]:
        return partial_file(self.folder / f"{self.name}-{part}.jsonl")

    def _grade(
        self,
        file: KeptFile[KeptVerdict],
        judge: Grader,
        examples: Sequence[LabelledExample],
        batch: int,
    ) -> list[Verdict]:
        """Return verdicts in the order of the examples."""
        from evaluation.report.evaluate import grading_order

        numbered = [(index + 1, examples[index].request()) for index in grading_order(examples)]
        return self._fill(file, judge, numbered, batch)

    def _fill(
        self,
        file: KeptFile[KeptVerdict],
        judge: Grader,
        numbered: list[tuple[int, JudgeRequest]],
        batch: int,
    ) -> list[Verdict]:
        """Return verdicts in the order of the numbers."""
        fill_showing(file, judge, lambda: numbered, len(numbered), batch, self.retry_failed)
        return [line.verdict for line in sorted(file.lines(), key=lambda line: line.row)]


def by_scores_of(
    judge: Judge | JudgeClient, examples: Sequence[LabelledExample]
) -> PairsByScores | None:
    """Return a judge of single responses as one of pairs, if the examples are pairs."""
    from evaluation.pairs.paradigms import PairsByScores, scoring_paradigm

    if not isinstance(judge, Judge) or any(len(each.responses) != 2 for each in examples):
        return None
    paradigm = scoring_paradigm(judge.card)
    return PairsByScores(judge, paradigm) if paradigm else None


def _is_calibrated(judge: Judge | JudgeClient, verdicts: Sequence[Verdict]) -> bool:
    """Return whether a judge that gave some of the verdicts has a calibration."""
    if isinstance(judge, Judge):
        return judge.calibration is not None
    names = {verdict.judge_name for verdict in verdicts}
    return any(card.get("calibration") for card in judge.judges if card["name"] in names)
