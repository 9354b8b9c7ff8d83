"""Calling the function under test, and turning what it returns into plain values.

The judge sees a function only through `call(args, kwargs) -> Outcome`. In this process that is
`functools.partial(run, function)`; a sandboxed function and one in the reader's browser give the same
outcomes. This file needs nothing but NumPy, because the sandbox loads it too.
"""

import copy
import functools
import inspect
import traceback
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Kind = Literal["returned", "raised", "timed out", "crashed", "not found"]
AXES = 8  # of an array that is looked at; the answers of exercises have up to five


@dataclass(frozen=True)
class Outcome:
    """What became of one call.

    Attributes
    ----------
    kind : str
        "returned", "raised", "timed out", "crashed" or "not found".
    value : ndarray or Odd
        What was returned, as a plain array (a scalar has no axes).
    after : tuple
        The arguments `(args, kwargs)` as the call left them.
    error : str
        What was raised, or why there is no answer, in words.
    bases : tuple of str
        The names of the exception's classes, its own first.
    lacks : str
        The name of another function that the called one uses and that is still a stub.
    """

    kind: Kind
    value: "Array | Odd | None" = None
    after: tuple[Sequence[Any], Mapping[str, Any]] | None = None
    error: str = ""
    bases: tuple[str, ...] = ()
    lacks: str = ""

    @property
    def unwritten(self) -> bool:
        """Whether the function, or one that it uses, is still a stub."""
        return self.bases[:1] == ("NotImplementedError",)


@dataclass(frozen=True)
class Odd:
    """A returned value that is no plain numeric array, in words: "None", "a dict"."""

    what: str


class Adapted(dict[str, Any]):
    """An argument that cannot cross to another process, written down as `data` and the `code` that makes it.

    The code defines `argument(data)`, which is what the function gets, and `answer(value, argument, odd)`: what is
    judged in place of the value that comes back, where it is no array; `odd(words)` says that it is none at all.
    """

    @classmethod
    def by(cls, module: types.ModuleType, data: Any) -> "Adapted":
        """The argument that a module makes of some data."""
        return cls(code=inspect.getsource(module), data=data)

    @property
    def module(self) -> types.ModuleType:
        """What the code defines."""
        return _defined(self["code"])


@functools.cache
def _defined(code: str) -> types.ModuleType:
    module = types.ModuleType("adapter")
    exec(code, vars(module))
    return module


def plain(value: Any) -> Array | Odd:
    """Turn a returned value into a plain numeric array, or say in words what it is.

    Parameters
    ----------
    value : object
        Anything: a number, a nested list, a tensor, a subclass of ndarray.

    Returns
    -------
    ndarray or Odd
        An exact `numpy.ndarray` of booleans, integers or floats that shares no memory with `value`.
    """
    if isinstance(value, Odd):
        return value
    if value is None:
        return Odd("None (is there a return?)")
    if isinstance(value, (str, bytes, dict, set)) or callable(value):
        return Odd(_article(type(value).__name__))
    if hasattr(value, "detach"):  # a tensor: NumPy refuses one with a gradient or in bfloat16
        value = value.detach().cpu()
        if str(value.dtype).endswith(".bfloat16"):
            value = value.float()
    try:
        array = np.array(np.asarray(value), copy=True, subok=False)
    except ValueError:
        return Odd(f"{_article(type(value).__name__)} of rows of unequal length")
    if array.ndim > AXES:
        return Odd(f"{_article(type(value).__name__)} with {array.ndim} axes")
    if type(array) is not np.ndarray or array.dtype.kind not in "biuf":
        if isinstance(value, int):
            return Odd("an integer beyond 64 bits")
        kind = f" of {array.dtype.name}" if isinstance(value, np.ndarray) else ""
        return Odd(f"{_article(type(value).__name__)}{kind} that is no array of real numbers")
    return array


def _article(noun: str) -> str:
    return f"an {noun}" if noun == "ndarray" or noun[:1] in "aeiouAEIOU" else f"a {noun}"


def run(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Outcome:
    """Call a function on copies of the arguments.

    Exceptions, `SystemExit` too, become an outcome; only `KeyboardInterrupt` passes.
    """
    args, kwargs = copy.deepcopy(args), copy.deepcopy(kwargs)
    try:
        given = [arg.module.argument(arg["data"]) if isinstance(arg, Adapted) else arg for arg in args]
        value = function(*given, **kwargs)
        for arg, made in zip(args, given, strict=True):
            if isinstance(arg, Adapted):
                value = arg.module.answer(value, made, Odd)
        value = plain(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the learner's code does, it is an answer and not our failure
        words, bases, lacks = _described(error, function)
        return Outcome("raised", after=(args, kwargs), error=words, bases=bases, lacks=lacks)
    return Outcome("returned", value=value, after=(args, kwargs))


def _described(error: BaseException, function: Callable[..., Any]) -> tuple[str, tuple[str, ...], str]:
    """The words for an exception, the names of its classes, and the stub that it came from, where that is another.

    An exception can be written so that asking raises, and so can a function.
    """
    try:
        bases = tuple(base.__name__ for base in type(error).__mro__)
        return _in_words(error), bases, _another_stub(error, function)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return "an exception that cannot be described", ("BaseException", "object"), ""


def _another_stub(error: BaseException, function: Callable[..., Any]) -> str:
    """The name of the stub that raised an error, where it is another function than the called one, or ""."""
    frames = traceback.extract_tb(error.__traceback__)
    name = getattr(function, "__name__", frames[-1].name)
    stub = type(error) is NotImplementedError and (frames[-1].line or "").startswith("raise NotImplementedError")
    return frames[-1].name if stub and frames[-1].name != name else ""


def _in_words(error: BaseException, limit: int = 600) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be read)"
    words = f"{type(error).__name__}: {text}" if text else type(error).__name__
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    if frames:
        last = [frame for frame in frames if frame.filename == frames[0].filename][-1]  # the learner's own line
        words += f" (line {last.lineno}: {last.line})" if last.line else f" (line {last.lineno})"
    return words if len(words) <= limit else words[:limit] + " …"
