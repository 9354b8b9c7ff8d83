"""Submissions that telephone."""

import socket
import threading

import pytest


@pytest.fixture
def server():
    """A server on this machine that notes who has connected."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        yield listener


def heard(listener):
    try:
        listener.accept()
    except TimeoutError:
        return False
    return True


def test_tcp(attack, server):
    outcome = attack(
        "import socket\ndef attack(port):\n    socket.create_connection(('127.0.0.1', port), timeout=2)",
        server.getsockname()[1],
    )
    assert outcome.kind == "raised" and "OSError" in outcome.bases, outcome
    assert not heard(server)


def test_abstract_unix_socket(attack):
    name = f"\0grader-{threading.get_native_id()}"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(name)
        listener.listen()
        listener.settimeout(0.2)
        outcome = attack(
            f"import socket\ndef attack():\n    socket.socket(socket.AF_UNIX).connect({name!r})\n    return 1.0"
        )
        assert outcome.kind == "raised" and "OSError" in outcome.bases, outcome
        assert not heard(listener)


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"])
def test_families(attack, family):
    """Only sockets between the submission's own processes can be made at all."""
    kind = "SOCK_SEQPACKET" if family == "AF_ALG" else "SOCK_DGRAM"
    outcome = attack(f"import socket\ndef attack():\n    socket.socket(socket.{family}, socket.{kind})\n    return 1.0")
    assert outcome.kind == "raised" and "OSError" in outcome.bases, outcome


def test_name_lookup_and_download(attack):
    outcome = attack(
        "import urllib.request\ndef attack():\n    urllib.request.urlopen('http://example.com', timeout=2)"
    )
    assert outcome.kind == "raised", outcome
