"""The frames themselves: what is sent comes back equal, and no bytes whatever do more than raise an error of ours."""

import contextlib
import socket
import struct
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.sandbox.inside import wire
from autograder.sandbox.inside.calls import Odd, Outcome


def through(message, **limits):
    here, there = socket.socketpair()
    with here, there:
        wire.send(here, message, time.monotonic() + 5)
        return wire.receive(there, time.monotonic() + 5, **limits)


def received(data):
    here, there = socket.socketpair()
    with here, there:
        here.sendall(data)
        here.shutdown(socket.SHUT_WR)
        return wire.receive(there, time.monotonic() + 5)


@pytest.mark.parametrize("dtype", [*wire.DTYPES, ">f8", ">i4"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 5), (2, 3, 4)])
def test_arrays(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    back = through({"x": (array, [array.T])})["x"]
    for sent, came in ((array, back[0]), (array.T, back[1][0])):
        assert type(came) is np.ndarray and came.shape == sent.shape and (came == sent).all()
        assert came.dtype == sent.dtype.newbyteorder("<") and came.flags.writeable


def test_scalars():
    for scalar in (np.float32(1.5), np.int64(3), np.bool_(True)):
        assert type(through(scalar)) is type(scalar) and through(scalar) == scalar


def test_special_floats():
    array = np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324])
    assert through(array).tobytes() == array.tobytes()
    assert through([np.inf, 1e308, -0.0]) == [np.inf, 1e308, -0.0]


leaves = st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False) | st.text()
values = st.recursive(
    leaves,
    lambda v: st.lists(v, max_size=4) | st.tuples(v, v) | st.dictionaries(st.text(), v, max_size=4),
    max_leaves=20,
)


@settings(max_examples=50, deadline=None)
@given(values)
def test_values(value):
    assert repr(through(value)) == repr(value)


def test_what_is_no_number_is_named():
    assert through({"x": [Odd("a dict"), {1}, "text", np.array(["x"], dtype=object)]})["x"][:3] == [
        Odd("a dict"),
        Odd("a set"),
        "text",
    ]


def test_depth():
    loop = []
    loop.append(loop)
    assert "deep" in repr(through(loop))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data):
    for header in (data, struct.pack("<II", len(data), 0) + data, struct.pack("<II", len(data) // 2, 5) + data):
        with pytest.raises((wire.WireError, EOFError)):
            received(header)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 500), st.integers(0, 255))
def test_one_byte_changed(place, byte):
    """A frame with one byte changed is another message, or refused."""
    here, there = socket.socketpair()
    with here, there:
        outcome = Outcome("returned", np.arange(3.0), (((1, 2.0), [3]), {"k": np.ones(2, bool)}), "", ("A",))
        wire.send(here, wire.outcome_message(outcome))
        data = bytearray(there.recv(10000))
    data[place % len(data)] = byte
    with contextlib.suppress(wire.WireError, EOFError):
        wire.outcome_of(received(bytes(data)))


def test_sizes_are_checked_before_anything_is_read():
    with pytest.raises(wire.WireError):
        received(struct.pack("<II", wire.HEADER_LIMIT + 1, 0))
    with pytest.raises(wire.WireError):
        received(struct.pack("<II", 2, wire.BODY_LIMIT + 1))


def test_too_large_to_send():
    here, there = socket.socketpair()
    with here, there, pytest.raises(wire.WireError, match="8 MB"):
        wire.send(here, np.zeros(2**20), body_limit=1000)


def test_deadlines():
    here, there = socket.socketpair()
    with here, there:
        with pytest.raises(TimeoutError):
            wire.receive(here, time.monotonic() + 0.05)
        with pytest.raises(TimeoutError):
            wire.send(here, np.zeros(10**6), time.monotonic() + 0.05)  # nobody takes it


def test_outcomes():
    for outcome in (
        Outcome("returned", np.array(3.0), ((np.ones(2),), {"eps": 1e-6})),
        Outcome("returned", Odd("None"), ((), {})),
        Outcome("raised", None, ((), {}), "ValueError: P", ("ValueError", "Exception")),
    ):
        assert repr(wire.outcome_of(through(wire.outcome_message(outcome)))) == repr(outcome)
