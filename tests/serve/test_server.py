"""Addresses and access keys."""

import pytest

from judging import CustosError
from serve.server import bind


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
