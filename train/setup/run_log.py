"""``train.log`` in the run folder: the details of a run, and what libraries warn about."""

from __future__ import annotations

import fcntl
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from judging.errors import CustosError, system_errors_at
from judging.log_lines import LineFormatter, one_line

COMMAND_VARIABLE = "CUSTOS_TRAIN_COMMAND"
"""Environment variable with the command that the user typed, for reports."""
GRADE_VARIABLE = "CUSTOS_GRADE_COMMAND"
"""Environment variable with the command that grades the user's table with the finished judge."""
LOG_FILE = "train.log"
LAUNCH_LOG = "launch.log"
"""What the processes printed to standard error, if they ended without an error line of ours."""


class RunLog(logging.Handler):
    """Collects lines until the run folder exists, then appends them to ``train.log`` there.

    Use :data:`RUN_LOG`: logging and warnings are set for a whole process, and so is this.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(LineFormatter("%(levelname)s %(name)s: %(message)s"))
        self._waiting: list[str] = []
        self._file: TextIO | None = None
        self.folder: Path | None = None  # of the run whose log is open, or was last

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep warnings and log records of libraries off the screen while the block runs.

        What has reached no file when the block fails unexpectedly is printed to standard error.
        """
        from transformers.utils import logging as transformers_logging

        self.folder = None
        transformers_logging.disable_default_handler()  # it writes to standard error
        transformers_logging.enable_propagation()
        logging.captureWarnings(True)
        logging.getLogger().addHandler(self)
        try:
            yield
        except Exception as error:
            if not isinstance(error, CustosError):
                sys.stderr.writelines(f"{line}\n" for line in self._waiting)
            raise
        finally:
            logging.getLogger().removeHandler(self)
            logging.captureWarnings(False)
            transformers_logging.disable_propagation()
            transformers_logging.enable_default_handler()
            self.close_file()

    def open_file(self, folder: Path) -> Path:
        """Append everything collected so far, and from now on, to the log of a run folder.

        The log is locked while it is open, so that only one run at a time writes to the folder.
        """
        self.close_file(keep=True)
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOG_FILE).open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise CustosError(
                f"{folder}: another process trains in it; wait for that one, or stop it"
            ) from None
        except OSError:  # a file system without locks
            pass
        self.folder, self._file = folder, file
        waiting, self._waiting = self._waiting, []
        for line in waiting:
            self.write(line)
        return folder / LOG_FILE

    def close_file(self, *, keep: bool = False) -> None:
        """Close the file; forget lines that reached none unless they are to be kept."""
        if self._file:
            with suppress(OSError):  # of a full disk, which the write before has reported
                self._file.close()
            self._file = None
        if not keep:
            self._waiting = []

    def write(self, line: str) -> None:
        """Append a line, or keep it until there is a file."""
        self._append(one_line(line))

    def emit(self, record: logging.LogRecord) -> None:
        """Append a record of a library's logger."""
        self._append(self.format(record).strip())

    def _append(self, line: str) -> None:
        if self._file:
            with system_errors_at(Path(self._file.name)):
                self._file.write(f"{line}\n")
                self._file.flush()
        else:
            self._waiting.append(line)


RUN_LOG = RunLog()
