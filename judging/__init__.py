"""Judges: requests, verdicts, tasks, the label tree, backbones and engines."""

from judging.errors import CustosError
from judging.judge import Judge
from judging.types import JudgeRequest, LabelledExample, Verdict

__all__ = ["CustosError", "Judge", "JudgeRequest", "LabelledExample", "Verdict"]
