"""Addresses and access keys, and what a hang-up does."""

import os
import pty

import pytest

from judging import CustosError
from serve.app import create_app
from serve.queue.service import Service
from serve.server import DrainingServer, bind
from tests.serve.made_up import FakeJudge


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


def test_a_taken_port() -> None:
    with bind("127.0.0.1", 0) as listener:
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(CustosError, match=f"cannot listen on 127.0.0.1 port {port}"):
            bind("127.0.0.1", port)


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
