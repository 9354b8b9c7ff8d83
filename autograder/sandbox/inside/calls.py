"""Calling the function under test, and turning what it returns into plain values.

The judge sees a function only through `call(args, kwargs) -> Outcome`. In this process that is
`functools.partial(run, function)`; a sandboxed function and one in the reader's browser give the same
outcomes. This file needs nothing but NumPy, because the sandbox loads it too.
"""

import copy
import traceback
from dataclasses import dataclass

import numpy as np

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

    kind: str
    value: object = None
    after: object = None
    error: str = ""
    bases: tuple = ()
    lacks: str = ""

    @property
    def unwritten(self):
        """Whether the function, or one that it uses, is still a stub."""
        return self.bases[:1] == ("NotImplementedError",)


@dataclass(frozen=True)
class Odd:
    """A returned value that is no plain numeric array, in words: "None", "a dict"."""

    what: str


class Layers(dict):
    """A torch module as an argument, written down so that it can cross to another process.

    Its layers and parameters by name, `{"blocks.0.fc": ("Linear", 8, 3), "cls_token": ("Parameter", 1, 8)}`: a class
    of `torch.nn` and its sizes. The function under test gets the module. When it returns optimizer groups, what comes
    back is the weight decay that they give each parameter, in the order of `named_parameters`.
    """


def module_of(layers):
    """The torch module that is written down as `Layers`."""
    import torch

    root = torch.nn.Module()
    for path, (kind, *sizes) in layers.items():
        *parents, name = path.split(".")
        owner = root
        for parent in parents:
            if not hasattr(owner, parent):
                owner.add_module(parent, torch.nn.Module())
            owner = getattr(owner, parent)
        make = getattr(torch.nn, kind)
        setattr(owner, name, make(torch.zeros(sizes)) if kind == "Parameter" else make(*sizes))
    return root


def _decays(groups, module):
    """The weight decay of each parameter in a pair of optimizer groups, or in words what is odd about them."""
    if not isinstance(groups, (list, tuple)):
        value = plain(groups)
        return value if isinstance(value, Odd) else Odd(f"an array of shape {value.shape}")
    if len(groups) != 2:
        return Odd(f"a {type(groups).__name__} of {len(groups)}")
    for group in groups:
        if not isinstance(group, dict):
            return Odd(f"a {type(groups).__name__} with {_article(type(group).__name__)} where a dictionary should be")
        for key in ("params", "weight_decay"):
            if key not in group:
                return Odd(f"a group without the key {key!r}")
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    decays = {name: [] for name in names.values()}
    for group in groups:
        for parameter in group["params"]:
            if id(parameter) not in names:
                return Odd(f"a group with {_article(type(parameter).__name__)} that is no parameter of the module")
            decays[names[id(parameter)]].append(float(group["weight_decay"]))
    for name, found in decays.items():
        if len(found) != 1:
            return Odd(f"groups that {'leave out' if not found else 'hold more than once'} {name}")
    return np.array([found[0] for found in decays.values()])


def plain(value):
    """Turn a returned value into a plain numeric array, or say in words what it is.

    Parameters
    ----------
    value : object
        Anything: a number, a nested list, a torch tensor, a subclass of ndarray.

    Returns
    -------
    ndarray or Odd
        An exact `numpy.ndarray` of booleans, integers or floats that shares no memory with `value`.
    """
    if value is None:
        return Odd("None (is there a return?)")
    if isinstance(value, (str, bytes, dict, set)) or callable(value):
        return Odd(_article(type(value).__name__))
    if hasattr(value, "detach"):  # a torch tensor: NumPy refuses one with a gradient or in bfloat16
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
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


def _article(noun):
    return f"an {noun}" if noun == "ndarray" or noun[:1] in "aeiouAEIOU" else f"a {noun}"


def run(function, args, kwargs):
    """Call a function on copies of the arguments.

    Exceptions, `SystemExit` too, become an outcome; only `KeyboardInterrupt` passes.
    """
    args, kwargs = copy.deepcopy(args), copy.deepcopy(kwargs)
    try:
        modules = {number: module_of(arg) for number, arg in enumerate(args) if isinstance(arg, Layers)}
        value = function(*(modules.get(number, arg) for number, arg in enumerate(args)), **kwargs)
        value = _decays(value, *modules.values()) if modules else plain(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the learner's code does, it is an answer and not our failure
        words, bases, lacks = _described(error, function)
        return Outcome("raised", after=(args, kwargs), error=words, bases=bases, lacks=lacks)
    return Outcome("returned", value=value, after=(args, kwargs))


def _described(error, function):
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


def _another_stub(error, function):
    """The name of the stub that raised an error, where it is another function than the called one, or ""."""
    frames = traceback.extract_tb(error.__traceback__)
    name = getattr(function, "__name__", frames[-1].name)
    stub = type(error) is NotImplementedError and (frames[-1].line or "").startswith("raise NotImplementedError")
    return frames[-1].name if stub and frames[-1].name != name else ""


def _in_words(error, limit=600):
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
