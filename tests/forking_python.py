"""An interpreter and a ``custos`` that fork their programs from one that has the libraries.

For commands that a page, a shell or our own code starts: with their folder first on the path, or
with ``sys.executable`` set to their ``python``, the forms ``python -m MODULE``, ``python FILE.py``
and ``python -c CODE`` take some milliseconds to begin instead of seconds. Arguments, streams,
environment, folder, signals and exit status are handed on; variables that a library reads when it
is imported come too late.
"""

import json
import os
import runpy
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
from threading import Thread

from tests.forks import fork_context, start

PROGRAMS: dict[str, Sequence[str]] = {"python": (), "custos": ("-m", "cli")}
"""Names of the programs, and what comes before their arguments."""

STAND_IN = """#!{python} -IS
import json, os, signal, socket, sys

command = {before} + sys.argv[1:]
if command[0] in ("-u", "-I"):
    del command[0]
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
order = [os.getpid(), os.getcwd(), dict(os.environ), command]
server.sendall(json.dumps(order).encode() + b"\\n")
answers = server.makefile()
process = int(answers.readline())
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: os.kill(process, number))
status = int(answers.readline())
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True


class _Order(StreamRequestHandler):
    """One program: forked, waited for, and killed if the one that stands for it has ended."""

    def handle(self) -> None:
        """Do as a stand-in asks, and answer it with a process number and an exit status."""
        number, folder, variables, command = json.loads(self.rfile.readline())
        streams = Path("/proc", str(number), "fd")
        executable = str(Path(str(self.server.server_address)).with_name("python"))
        process = start(
            *(streams / "1", streams / "2", Path(folder), variables),
            *(interpret, streams / "0", executable, command),
        )
        with suppress(BrokenPipeError):
            self.wfile.write(f"{process.pid}\n".encode())
            if process.sentinel not in wait([process.sentinel, self.connection]):
                process.kill()
            process.join()
            self.wfile.write(f"{process.exitcode}\n".encode())


def interpret(standard_input: Path, executable: str, command: Sequence[str]) -> None:
    """Run a module or a file as an interpreter does, as the target of a fork."""
    os.dup2(os.open(standard_input, os.O_RDONLY), 0)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.executable = executable
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [path for path in paths if path]
    first, *others = command
    if first == "-m":
        sys.argv = others
        sys.path.insert(0, os.getcwd())
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = [first, *others[1:]]
        sys.path.insert(0, os.getcwd())
        exec(others[0], {"__name__": "__main__"})
    else:
        sys.argv = list(command)
        sys.path.insert(0, str(Path(first).parent))
        runpy.run_path(first, run_name="__main__")


@contextmanager
def forking_programs() -> Iterator[Path]:
    """Yield a folder with the programs, which work while the block runs."""
    fork_context()
    with tempfile.TemporaryDirectory(prefix="custos-bin-") as name:
        folder = Path(name)
        address = str(folder / "socket")
        for program, before in PROGRAMS.items():
            text = STAND_IN.format(python=sys.executable, before=list(before), address=address)
            (folder / program).write_text(text, encoding="utf-8")
            (folder / program).chmod(0o755)
        with _Server(address, _Order) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            yield folder
            server.shutdown()
