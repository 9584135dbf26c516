"""Addresses and access keys, and what a hang-up does."""

import hashlib
import os
import pty
import re
import ssl
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
import trustme

from clients.judge_client import JudgeClient
from judging import CustosError, JudgeRequest
from serve.app import create_app
from serve.calls.limits import Limits
from serve.gate import connections
from serve.queue.service import Service
from serve.server import DrainingServer, TlsFiles, bind
from tests.serve.made_up import FakeJudge, row
from tests.serve.sockets import send_raw, serving, wait_until


@pytest.mark.parametrize(
    "host",
    ["0.0.0.0", "::", "", "192.168.0.1", "127.0.0.1.example.org", "example.org", "2130706433"],
)
def test_other_hosts_need_a_key(host: str) -> None:
    with pytest.raises(CustosError, match="could call without a key"):
        bind(host, 0)


def test_a_guarded_service_may_be_reached_from_elsewhere() -> None:
    with bind("0.0.0.0", 0, is_guarded=True) as listener:
        assert listener.getsockname()[1]


@pytest.mark.parametrize(
    ("host", "port", "wrong"),
    [
        ("127.0.0.1", 99_999, "--port"),
        ("127.0.0.1", None, "--port"),
        ("192.0.2.1", 0, "--host"),  # an address of no machine
        ("a..b", 0, "--host"),
        ("ä" * 70, 0, "--host"),
    ],
)
def test_an_address_that_cannot_be_used_names_the_option_that_is_wrong(
    host: str, port: int | None, wrong: str
) -> None:
    with bind("127.0.0.1", 0) as taken:
        if port is None:
            port = taken.getsockname()[1]
        for option, named in ((None, wrong), ("--metrics-address", "--metrics-address")):
            with pytest.raises(CustosError) as raised:
                bind(host, port, is_guarded=True, option=option)
            assert re.findall("--[a-z-]+", str(raised.value)) == [named]


def test_a_hang_up_ends_a_service_whose_terminal_has_gone_and_no_other(judge: FakeJudge) -> None:
    service = Service({"a": judge})
    server = DrainingServer(create_app(service), service)
    terminal, seen = pty.openpty()
    server._terminals = [seen]
    states = []
    for _ in range(2):
        server.hang_up()
        states.append(service.state)
        os.close(terminal if len(states) == 1 else seen)
    assert states == ["ready", "draining"]


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def write_files(authority: trustme.CA, folder: Path) -> TlsFiles:
    issued = authority.issue_cert("127.0.0.1")
    files = TlsFiles(folder / "cert.pem", folder / "key.pem")
    for blob in issued.cert_chain_pems:
        blob.write_to_path(str(files.cert), append=True)
    issued.private_key_pem.write_to_path(str(files.key))
    return files


def test_a_certificate_is_read_again_while_calls_go_on(
    authority: trustme.CA, judge: FakeJudge, tmp_path: Path
) -> None:
    files = write_files(authority, tmp_path)
    service = Service({"a": judge})
    server = DrainingServer(create_app(service), service, files)
    server.config.load()
    number = certificate_number(server)
    files.cert.write_text("broken", encoding="utf-8")
    server.hang_up()
    assert certificate_number(server) == number
    files.cert.unlink()
    files.key.unlink()
    write_files(authority, tmp_path)
    server.hang_up()
    assert certificate_number(server) != number


def certificate_number(server: DrainingServer) -> str:
    """Return the serial number that a client of the server sees."""
    assert server.config.ssl
    into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    client = trusting.wrap_bio(into, out)
    ours = server.config.ssl.wrap_bio(out, into, server_side=True)
    for _ in range(4):
        for side in (client, ours):
            with suppress(ssl.SSLWantReadError):
                side.do_handshake()
    content = client.getpeercert(binary_form=True)
    assert content
    return hashlib.sha256(content).hexdigest()


def test_answers_over_https(authority: trustme.CA, judge: FakeJudge, tmp_path: Path) -> None:
    files = write_files(authority, tmp_path)
    files.check()
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with serving(Service({"a": judge}), tls=files) as client:
        address = str(client.base_url)
        assert address.startswith("https://127.0.0.1:")
        answer = httpx.post(f"{address}/judge", json=row(), verify=trusting)
        assert answer.json()["label"] == "Correct"
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(address)
        with pytest.raises(httpx.TransportError):
            httpx.get(address.replace("https", "http"))


def test_a_client_trusts_the_authority_that_a_variable_names(
    authority: trustme.CA, judge: FakeJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    request = JudgeRequest.model_validate(row())
    with serving(Service({"a": judge}), tls=write_files(authority, tmp_path)) as client:
        with pytest.raises(CustosError, match="set SSL_CERT_FILE to the certificate"):
            JudgeClient.connect(str(client.base_url))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        [verdict] = JudgeClient.connect(str(client.base_url)).grade([request])
    assert verdict.label == "Correct"


def test_connections_count_before_their_handshake(
    authority: trustme.CA, judge: FakeJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_REFUSED", 2)
    files = write_files(authority, tmp_path)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    with serving(Service({"a": judge}, Limits(address_connections=4)), tls=files) as client:
        silent = [send_raw(client, b"") for _ in range(4)]
        told = httpx.get(client.base_url.join("/health/live"), verify=trusting)
        assert (told.status_code, told.headers["Retry-After"]) == (503, "5")
        # Three for two places: one is dropped while the connection that was told still counts.
        silent += [send_raw(client, b"") for _ in range(3)]
        assert send_raw(client, b"").recv(1) == b"", "one too many to be told so"
        for connection in silent:
            connection.close()

        def is_served() -> bool:
            with suppress(httpx.TransportError):  # until those that have left are counted no more
                return httpx.get(told.url, verify=trusting).status_code == 200
            return False

        wait_until(is_served)


def test_files_that_cannot_be_used_are_one_clear_error(
    authority: trustme.CA, tmp_path: Path
) -> None:
    files = write_files(authority, tmp_path)
    other = tmp_path / "other.pem"
    authority.issue_cert("127.0.0.1").private_key_pem.write_to_path(str(other))
    (tmp_path / "text.pem").write_text("no key")
    for key in (other, tmp_path / "text.pem", tmp_path / "missing.pem"):
        with pytest.raises(CustosError, match="cannot be used"):
            TlsFiles(files.cert, key).check()


def test_a_key_that_others_may_open_is_warned_of(
    authority: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = write_files(authority, tmp_path)
    for mode, has_warning in ((0o600, False), (0o644, True)):
        caplog.clear()
        files.key.chmod(mode)
        files.check()
        assert ("other users may open it" in caplog.text) is has_warning
