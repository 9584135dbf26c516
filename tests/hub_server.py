"""A hub of checkpoint folders on a real socket, with the few answers that its client asks for."""

import hashlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COMMIT = "c" * 40


@contextmanager
def hub_of(name: str, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve a folder as a model of the hub; yield the address and the files that are fetched."""
    fetched: list[str] = []
    files = {file.name: file for file in folder.iterdir()}
    entries = [
        {"type": "file", "path": path, "size": file.stat().st_size, "oid": _etag(file)}
        for path, file in files.items()
    ]

    class Handler(BaseHTTPRequestHandler):
        """Answers for one model at one commit."""

        def do_HEAD(self) -> None:
            self._answer(is_head=True)

        def do_GET(self) -> None:
            self._answer(is_head=False)

        def _answer(self, *, is_head: bool) -> None:
            path = self.path.partition("?")[0]
            file = files.get(path.rpartition("/")[2])
            if path == f"/api/models/{name}/revision/main":
                self._send(200, json.dumps({"id": name, "sha": COMMIT}).encode(), is_head)
            elif path == f"/api/models/{name}/tree/{COMMIT}":
                self._send(200, json.dumps(entries).encode(), is_head)
            elif path.startswith(f"/{name}/resolve/") and file:
                if not is_head:
                    fetched.append(file.name)
                self._send(200, file.read_bytes(), is_head, _etag(file))
            else:
                self._send(404, b"", is_head)

        def _send(self, status: int, body: bytes, is_head: bool, etag: str = "") -> None:
            self.send_response(status)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{etag}"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if not is_head:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output free of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", fetched
    finally:
        server.shutdown()
        server.server_close()


def _etag(file: Path) -> str:
    return hashlib.sha1(file.read_bytes()).hexdigest()


@contextmanager
def silent_hub() -> Iterator[str]:
    """Yield the address of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
