"""Whether an answer is right and, if not, in what words."""

import numpy as np

from autograder.sandbox.inside.calls import Odd

KINDS = {"b": "booleans", "i": "integers", "u": "integers", "f": "floats"}
ONE = {"booleans": "a boolean", "integers": "an integer", "floats": "a float"}
LOW_PRECISION = 1e-4  # where the right answer itself is in float32, on outputs of order 1
SHORT = 8  # a row with so many entries is shown whole
_quiet = np.errstate(all="ignore")  # whatever the learner has made of np.seterr


def narrow(array):
    """Whether an array holds floats of less than double precision."""
    return array.dtype.kind == "f" and array.dtype.itemsize < 8


@_quiet
def difference(answer, expected, tolerance, label=None):
    """Say how an answer differs from what was expected.

    Parameters
    ----------
    answer : ndarray or Odd
        As `calls.plain` gives it.
    expected : ndarray
        The reference's answer, a plain array.
    tolerance : float
        Absolute and relative; where `expected` is narrow, at least that of single precision.
    label : function, optional
        Index of an entry to words for it.

    Returns
    -------
    str or None
        None when the answer is right.
    """
    if isinstance(answer, Odd):
        return f"should return {_form(expected)}; yours returned {answer.what}"
    if answer.dtype.kind == "f" and not np.isfinite(answer).all():
        index = _first(~np.isfinite(answer))
        at = f" at {_index(index)}" if index else ""
        return f"should be finite everywhere; yours has {answer[index]}{at}"
    empty = answer.size == 0 and answer.shape == expected.shape  # an empty list has no kind
    if KINDS[answer.dtype.kind] != KINDS[expected.dtype.kind] and not empty:
        return f"should be {_kind(expected)}; yours is {_kind(answer)}, {_number(answer)}"
    if answer.shape != expected.shape:
        return _shapes(answer, expected)
    wrong = ~close(answer, expected, tolerance)
    if not wrong.any():
        return None
    return _values(answer, expected, wrong, label)


def close(answer, expected, tolerance):
    """Entry by entry, whether two arrays of one shape agree."""
    if expected.dtype.kind != "f":
        return answer == expected
    allowed = max(tolerance, LOW_PRECISION) if narrow(expected) else tolerance
    return np.abs(answer.astype(np.float64) - expected) <= allowed + allowed * np.abs(expected)


@_quiet
def same(answer, other, tolerance):
    """Whether two answers, plain or odd, are the same."""
    if isinstance(answer, Odd) or isinstance(other, Odd):
        return type(answer) is type(other) and answer == other
    if answer.shape != other.shape or KINDS[answer.dtype.kind] != KINDS[other.dtype.kind]:
        return False
    both_nan = np.isnan(answer) & np.isnan(other) if other.dtype.kind == "f" else False
    return bool((close(answer, other, tolerance) | both_nan | (answer == other)).all())


def _kind(array):
    kind = KINDS[array.dtype.kind]
    return f"of {kind}" if array.ndim else ONE[kind]


def _form(expected):
    kind = KINDS[expected.dtype.kind]
    return f"{kind} of shape {expected.shape}" if expected.ndim else ONE[kind]


def _shapes(answer, expected):
    message = f"should have shape {expected.shape}; yours has {answer.shape}"
    if expected.ndim == 0:
        message = f"should be one number; yours has shape {answer.shape}"
    elif answer.ndim == 0:
        message = f"should have shape {expected.shape}; yours is one number, {_number(answer)}"
    elif answer.ndim > 1 and answer.shape == expected.shape[::-1]:
        message += " (the axes in reverse)"
    elif answer.size == expected.size:
        message += " (as many numbers, arranged otherwise)"
    return message


def _values(answer, expected, wrong, label):
    index = _first(wrong)
    words = f", {label(index)}" if label and index else ""
    if len(index) > 1 and expected.shape[-1] <= SHORT:
        row = index[:-1]
        right, yours = _told_apart(expected[row], answer[row])
        found = f"row {_index(row)} should be {right}{words}; yours is {yours}"
        found += _whose_row(answer[row], expected, label)
    elif len(index) <= 1 and expected.size <= SHORT:
        right, yours = _told_apart(expected, answer)
        found = f"should be {right}; yours is {yours}"
    else:
        right, yours = _told_apart(expected[index], answer[index])
        found = f"entry {_index(index)} should be {right}{words}; yours is {yours}"
    count = int(wrong.sum())
    return found if count == 1 else f"{found} ({count} of {wrong.size} entries differ)"


def _whose_row(row, expected, label):
    """Where the learner's row stands in the right answer, if it stands there once."""
    rows = expected.reshape(-1, expected.shape[-1])
    hits = np.flatnonzero((np.abs(rows - row) <= 1e-9).all(axis=-1)) if rows.dtype.kind != "b" else []
    if len(hits) != 1:
        return ""
    place = tuple(int(i) for i in np.unravel_index(hits[0], expected.shape[:-1]))
    return f", {label((*place, 0))}" if label else f", which belongs in row {_index(place)}"


@_quiet
def pattern(answer, expected, tolerance):
    """A relation between answer and expectation that often gives the mistake away, as a sentence, or ""."""
    if isinstance(answer, Odd) or answer.shape != expected.shape or expected.dtype.kind != "f":
        return ""
    if np.count_nonzero(expected) < 2:  # of one number any other is a multiple
        return ""
    answer = answer.astype(np.float64)
    if not np.isfinite(answer).all():
        return ""

    def right(other):
        return bool(close(other, expected, max(tolerance, 1e-6)).all())

    if right(answer):  # then only its type is wrong
        return ""
    largest = np.unravel_index(np.abs(expected).argmax(), expected.shape)
    if expected[largest] != 0 and answer[largest] != 0:
        factor = answer[largest] / expected[largest]
        if right(answer / factor):
            how = "with the sign turned" if np.isclose(factor, -1) else f"times {factor:.4g}"
            return f" Everywhere yours is the right answer {how}."
    if expected.ndim == 2:
        if right(answer[::-1]):
            return " Yours has the right rows from last to first."
        if answer.shape[0] == answer.shape[1] and right(answer.T):
            return " Yours is the transpose of the right answer."
        for axis, what in ((0, "rows"), (1, "columns")):
            if right(_sorted_like(answer, expected, axis)):
                return f" Yours has the right {what} in another order."
    return ""


def _sorted_like(answer, expected, axis):
    """The answer's rows (or columns) put into the order in which the sorted ones match."""
    a, e = (np.moveaxis(x, axis, 0) for x in (answer, expected))
    out = np.empty_like(a)
    out[np.lexsort(e.T)] = a[np.lexsort(a.T)]
    return np.moveaxis(out, 0, axis)


def _first(mask):
    """The index of the first entry that is true."""
    return tuple(int(i) for i in np.unravel_index(mask.argmax(), mask.shape))


def _index(index):
    return str(index[0]) if len(index) == 1 else "(" + ", ".join(map(str, index)) + ")"


def _told_apart(right, yours):
    """Both in words, with as many digits as it takes to see that they differ."""
    for digits in (6, 10, 17):
        words = _number(right, digits), _number(yours, digits)
        if words[0] != words[1]:
            break
    return words


def _number(value, digits=6):
    value = np.asarray(value)
    if value.ndim:
        return _row(value.ravel(), digits) if value.size <= SHORT else f"shape {value.shape}"
    return f"{value[()]:.{digits}g}" if value.dtype.kind == "f" else str(value[()])


def _row(values, digits):
    return "[" + ", ".join(_number(value, digits) for value in values) + "]"
