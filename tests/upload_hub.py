"""A hub on a real socket that takes uploads: repositories, large files and commits."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "d" * 40


@dataclass
class UploadHub:
    """What the hub was told, and how it answers."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """Committed files by name."""
    private: bool = False
    exists: bool = False
    status: int = 200
    """Status of every answer to a request that would write."""
    large: dict[str, bytes] = field(default_factory=dict)
    """Large files by SHA-256, before a commit names them."""
    requests: list[str] = field(default_factory=list)
    tokens: dict[str, str] = field(default_factory=dict)
    """Header of authorization by path, of what is not a large file."""

    def commit(self, body: bytes) -> None:
        """Apply a commit: a header and an operation on every line."""
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                self.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.files[value["path"]] = self.large[value["oid"]]
            elif line["key"] == "deletedFile":
                del self.files[value["path"]]

    def answer(self, path: str, body: bytes) -> tuple[int, Any]:
        """Return status and JSON of the answer to a POST or PUT."""
        if path == "/api/validate-yaml":
            return 200, {}
        if path == "/api/repos/create":
            if self.status != 200:
                return self.status, {"error": "you may not create this"}
            sent = json.loads(body)
            if not self.exists:
                self.private = sent.get("visibility") == "private" or sent.get("private") is True
            status, self.exists = 409 if self.exists else 200, True
            return status, {"url": f"{self.address}/{sent['organization']}/{sent['name']}"}
        if "/preupload/" in path:
            modes = [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if file["path"].endswith(".safetensors") else "regular",
                    "shouldIgnore": False,
                }
                for file in json.loads(body)["files"]
            ]
            return 200, {"files": modes}
        if path.endswith("/info/lfs/objects/batch"):
            objects = [
                {**item, "actions": {"upload": {"href": f"{self.address}/lfs/{item['oid']}"}}}
                for item in json.loads(body)["objects"]
            ]
            return 200, {"objects": objects}
        if path.startswith("/lfs/"):
            oid = path.rpartition("/")[2]
            assert hashlib.sha256(body).hexdigest() == oid
            self.large[oid] = body
            return 200, {}
        if "/commit/" in path:
            self.commit(body)
            name = path.removeprefix("/api/models/").partition("/commit/")[0]
            url = f"{self.address}/{name}/commit/{COMMIT}"
            return 200, {"commitUrl": url, "commitOid": COMMIT}
        return 404, {}


@contextmanager
def upload_hub() -> Iterator[UploadHub]:
    """Serve a hub without repositories; yield what it is told."""
    hub = UploadHub()

    class Handler(BaseHTTPRequestHandler):
        """Reads whole bodies and answers with JSON."""

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._send(*hub.answer(self._path(), body))

        do_PUT = do_POST

        def do_GET(self) -> None:
            name = self._path().removeprefix("/api/models/")
            siblings = [{"rfilename": file} for file in hub.files]
            model = {"id": name, "sha": COMMIT, "private": hub.private, "siblings": siblings}
            self._send(*((200, model) if hub.exists else (404, {})))

        def _path(self) -> str:
            path = self.path.partition("?")[0]
            hub.requests.append(f"{self.command} {path}")
            if not path.startswith("/lfs/"):
                hub.tokens[path] = self.headers.get("Authorization", "")
            return path

        def _send(self, status: int, content: Any) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test's output free of requests."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
