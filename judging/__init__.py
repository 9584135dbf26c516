"""Judges: requests, verdicts, tasks, the label tree, backbones and engines."""

import os

# Threads that wait for others by spinning lose nearly all speed when another process takes a core
# (python -m experiments busy_neighbour). OpenMP reads this once, when torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from judging.errors import CustosError
from judging.judge import Judge
from judging.types import JudgeRequest, LabelledExample, Verdict

__all__ = ["CustosError", "Judge", "JudgeRequest", "LabelledExample", "Verdict"]
