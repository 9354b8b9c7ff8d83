"""What crosses between the grader and a sandboxed process: JSON and raw array bytes, never pickle.

A frame is two sizes, a JSON header (the types and shapes of the arrays, and the value that refers to them) and
the bytes of the arrays. The reader trusts nothing: every size is checked before memory is taken, every type
against a short list. This file needs nothing but NumPy, because the sandbox loads it too.
"""

import json
import math
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .calls import AXES, Adapted, Array, Odd, Outcome, plain

HEADER_LIMIT = 1 << 20  # bytes of JSON in a reply; parsed, JSON takes some thirty times its size
BODY_LIMIT = 64 << 20  # bytes of arrays in a reply
DEPTH = 12  # of lists, tuples and dicts in one another
DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
_SIZES = struct.Struct("<II")


class WireError(Exception):
    """What came is no message, or what should be sent is too large for one."""


def send(
    sock: socket.socket,
    message: Any,
    deadline: float | None = None,
    *,
    header_limit: int = 1 << 30,
    body_limit: int = 1 << 31,
) -> None:
    """Send a message: None, booleans, numbers, text, arrays, and lists, tuples, dicts and layers of these.

    Raises
    ------
    WireError
        It is larger than the limits; nothing was sent.
    TimeoutError
        The other side has not taken it by the deadline (in the seconds of `time.monotonic`).
    """
    arrays: list[Array] = []
    value = _pack(message, arrays, DEPTH)
    header = json.dumps({"arrays": [[a.dtype.str, list(a.shape)] for a in arrays], "value": value}).encode()
    size = sum(array.nbytes for array in arrays)
    if len(header) > header_limit or size > body_limit:
        raise WireError(f"{(len(header) + size) / 2**20:.0f} MB, more than can be sent")
    for part in (_SIZES.pack(len(header), size) + header, *(array.tobytes() for array in arrays)):
        left = memoryview(part)
        while left:
            _set_timeout(sock, deadline)
            left = left[sock.send(left) :]


def receive(
    sock: socket.socket,
    deadline: float | None = None,
    *,
    header_limit: int = HEADER_LIMIT,
    body_limit: int = BODY_LIMIT,
    tensor: Callable[[Array], Any] | None = None,
) -> Any:
    """Receive a message.

    Parameters
    ----------
    sock : socket.socket
    deadline : float, optional
        For the whole frame, in the seconds of `time.monotonic`: who trickles gains nothing.
    header_limit, body_limit : int
        In bytes.
    tensor : callable, optional
        Makes a tensor of what was one when it was sent. Without it, it is an array.

    Raises
    ------
    WireError
        What came is no message.
    EOFError
        The other side has closed.
    TimeoutError
        The deadline has passed.
    """
    header_size, body_size = _SIZES.unpack(_read(sock, _SIZES.size, deadline))
    if header_size > header_limit or body_size > body_limit:
        raise WireError("it is too large")
    try:
        header = json.loads(_read(sock, header_size, deadline))
        declared, value = header["arrays"], header["value"]
        types = [_array_type(dtype, shape) for dtype, shape in declared]
    except (ValueError, TypeError, KeyError, RecursionError) as error:  # endless digits and brackets among them
        raise WireError("its header is not right") from error
    if sum(dtype.itemsize * math.prod(shape) for dtype, shape in types) != body_size:
        raise WireError("its sizes do not add up")
    body = _read(sock, body_size, deadline)
    arrays: list[Array | None] = []
    start = 0
    for dtype, shape in types:
        count = math.prod(shape)
        array = np.frombuffer(body, dtype, count, start).reshape(shape) if count else np.empty(shape, dtype)
        # A byte that is neither 0 nor 1 would be a third truth value.
        arrays.append(array.view(np.uint8).astype(bool) if dtype.kind == "b" else array)
        start += count * dtype.itemsize
    return _unpack(value, arrays, tensor or (lambda array: array), DEPTH)


def outcome_message(outcome: Outcome) -> dict[str, Any]:
    """An outcome as a message that `send` takes."""
    return {
        "kind": outcome.kind,
        "value": outcome.value,
        "after": outcome.after,
        "error": outcome.error,
        "bases": list(outcome.bases),
        "lacks": outcome.lacks,
    }


def outcome_of(message: Any) -> Outcome:
    """The outcome in a message. Raises `WireError` where there is none."""
    try:
        kind, value, after = message["kind"], message["value"], message["after"]
        error, bases, lacks = message["error"], message["bases"], message["lacks"]
    except (TypeError, KeyError, IndexError) as lack:
        raise WireError("it is no outcome") from lack
    right = (
        type(kind) is str
        and kind in ("returned", "raised")
        and isinstance(value, (np.ndarray, Odd) if kind == "returned" else type(None))
        and (after is None or (type(after) is tuple and [type(part) for part in after] == [tuple, dict]))
        and isinstance(error, str)
        and isinstance(lacks, str)
        and isinstance(bases, list)
        and all(isinstance(base, str) for base in bases)
    )
    if not right:
        raise WireError("it is no outcome")
    return Outcome(
        kind, value, after, text(error, 1000), tuple(text(base, 100) for base in bases[:32]), text(lacks, 100)
    )


def text(string: str, limit: int) -> str:
    """Text of the other side, safe to print and to write: no control characters, no half surrogates."""
    string = string[:limit].encode("utf-8", "replace").decode()
    return "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in string)


def _pack(value: Any, arrays: list[Array], depth: int) -> Any:
    """The JSON form of a value; arrays are appended to `arrays` and referred to by their place."""
    if value is None or type(value) in (bool, float, str):
        return value
    if type(value) is int and abs(value) < 1 << 63:
        return value
    if isinstance(value, Odd):
        return {"odd": value.what}
    if type(value) in (list, tuple, dict, Adapted) and depth == 0:
        return {"odd": "something nested too deeply"}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_pack(item, arrays, depth - 1) for item in value]}
    if type(value) in (dict, Adapted):
        pairs = [[str(key), _pack(item, arrays, depth - 1)] for key, item in value.items()]
        return {"dict" if type(value) is dict else "adapted": pairs}
    array = plain(value)  # a tensor, a NumPy scalar, a subclass, or no numbers at all
    if isinstance(array, Odd):
        return {"odd": array.what}
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in DTYPES:  # the longer floats
        dtype = np.dtype("<f8")
    arrays.append(array.astype(dtype, copy=False))
    tag = "scalar" if isinstance(value, np.generic) else "tensor" if hasattr(value, "detach") else "array"
    return {tag: len(arrays) - 1}


def _unpack(tree: Any, arrays: list[Array | None], tensor: Callable[[Array], Any], depth: int) -> Any:
    """The value of a JSON form."""
    if tree is None or type(tree) in (bool, float, str):
        return tree
    if type(tree) is int and abs(tree) < 1 << 63:
        return tree
    if depth < 0 or type(tree) is not dict or len(tree) != 1:
        raise WireError("it holds something that is no value")
    ((tag, content),) = tree.items()
    if tag == "odd" and type(content) is str:
        return Odd(text(content, 200))
    if tag in ("array", "scalar", "tensor") and type(content) is int and 0 <= content < len(arrays):
        array, arrays[content] = arrays[content], None
        if array is None:  # a few bytes of JSON would be an array again and again
            raise WireError("it holds an array twice")
        return array if tag == "array" else array[()] if tag == "scalar" else tensor(array)
    if tag in ("list", "tuple") and type(content) is list:
        items = [_unpack(item, arrays, tensor, depth - 1) for item in content]
        return items if tag == "list" else tuple(items)
    pairs = tag in ("dict", "adapted") and type(content) is list
    if pairs and all(type(pair) is list and len(pair) == 2 and type(pair[0]) is str for pair in content):
        named = {key: _unpack(item, arrays, tensor, depth - 1) for key, item in content}
        return named if tag == "dict" else Adapted(named)
    raise WireError("it holds something that is no value")


def _array_type(dtype: Any, shape: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """A declared type and shape, checked."""
    sizes = type(shape) is list and len(shape) <= AXES and all(type(n) is int and 0 <= n < 1 << 31 for n in shape)
    if dtype not in DTYPES or not sizes or math.prod(n or 1 for n in shape) > 1 << 31:
        raise ValueError("no type and shape of an array")
    return np.dtype(dtype), tuple(shape)


def _read(sock: socket.socket, size: int, deadline: float | None) -> bytearray:
    """Exactly so many bytes."""
    data = bytearray(size)
    left = memoryview(data)
    while left:
        _set_timeout(sock, deadline)
        try:
            count = sock.recv_into(left)
        except ConnectionError:
            count = 0
        if count == 0:
            raise EOFError("closed")
        left = left[count:]
    return data


def _set_timeout(sock: socket.socket, deadline: float | None) -> None:
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("no whole message in time")
        sock.settimeout(left)
