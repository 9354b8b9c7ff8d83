"""`check` and `evaluate` on functions that answer in every way but the expected one."""

import datetime
import functools
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from autograder import CheckFailed, check, evaluate
from autograder.judging.compare import difference, pattern
from autograder.judging.exercise import Case, Exercise, Raises
from autograder.judging.judge import judge
from autograder.sandbox.inside.calls import Odd, plain, run
from solutions.patchify import patch_embed_conv, patchify
from solutions.tokens import embed, patch_token_count


def by_loops(img, P):
    H_p, W_p = img.shape[0] // P, img.shape[1] // P
    if not (H_p and W_p):
        raise ValueError("too small")
    rows = []
    for r in range(H_p):
        for c in range(W_p):
            rows.append([img[r * P + u, c * P + v, k] for u in range(P) for v in range(P) for k in range(img.shape[2])])
    return rows


def by_einsum(img_chw, W_conv, b):
    P = W_conv.shape[-1]
    C, H, W = img_chw.shape
    H_p, W_p = H // P, W // P
    windows = img_chw[:, : H_p * P, : W_p * P].reshape(C, H_p, P, W_p, P)
    return np.einsum("krusv,dkuv->rsd", windows, W_conv).reshape(H_p * W_p, -1) + b


def by_torch(img_chw, W_conv, b):
    import torch

    image, weight, bias = (torch.tensor(array, requires_grad=True) for array in (img_chw, W_conv, b))
    grid = torch.nn.functional.conv2d(image[None], weight, bias, stride=W_conv.shape[-1])
    return grid[0].flatten(1).T  # still part of a graph


@pytest.mark.parametrize(
    ("name", "function"), [("patchify", by_loops), ("patch_embed_conv", by_einsum), ("patch_embed_conv", by_torch)]
)
def test_another_style_is_right_too(name, function, capsys):
    assert evaluate(name, function, hidden=True).passed
    check(function, name)
    assert capsys.readouterr().out.startswith(f"{name}: ")


def test_verdict_of_a_partly_right_function():
    def no_error(img, P):
        H_p, W_p = img.shape[0] // P, img.shape[1] // P
        return patchify(img, P) if H_p and W_p else np.empty((0, P * P * img.shape[2]))

    verdict = evaluate("patchify", no_error, hidden=True)
    # Of 9 parts (1 + 1 + 1 + 1 visible, 2 + 1 + 1 hidden, 1 for the inputs) the two about errors are lost.
    assert verdict.score == pytest.approx(7 / 9)
    assert type(verdict.score) is float
    assert (verdict.status, verdict.passed, verdict.max_points) == ("partly passed", False, 3.0)
    assert verdict.points == pytest.approx(3 * 7 / 9)
    assert {failure.subtest for failure in verdict.failures} == {"too_small", "any_too_small"}


def test_hidden_message_gives_no_case_away():
    def wrong_on_any_crop(img, P):
        H, W, _ = img.shape
        if (H, W) in {(5, 8), (2, 9), (4, 4), (4, 6), (2, 4), (2, 2)}:
            return patchify(img, P)
        return patchify(img, P) + 1.0

    visible = evaluate("patchify", wrong_on_any_crop)
    assert visible.passed
    hidden = evaluate("patchify", wrong_on_any_crop, hidden=True)
    assert hidden.failures
    assert all(failure.hidden for failure in hidden.failures)
    for failure in hidden.failures:
        assert "should be" not in failure.message
        assert "shape (" not in failure.message


class Unreadable(Exception):
    def __str__(self):
        raise SystemExit


@pytest.mark.parametrize(
    "leave",
    [
        Unreadable(),
        SystemExit,
        SystemExit(0),
        KeyError("x"),
        GeneratorExit(),
        RecursionError(),
        MemoryError(),
        StopIteration(),
    ],
    ids=repr,
)
def test_whatever_the_function_raises_is_a_failure_and_not_an_error(leave):
    def function(img, P):
        raise leave

    verdict = evaluate("patchify", function, hidden=True)
    assert (verdict.score, verdict.status) == (0.0, "failed")


@pytest.fixture
def as_it_was(tmp_path):
    """Put back what the functions of the next test change."""
    errors, folder, environment, limit = np.geterr(), os.getcwd(), dict(os.environ), sys.getrecursionlimit()
    with warnings.catch_warnings():
        yield
    np.seterr(**errors)
    os.chdir(folder)
    os.environ.update(environment)
    sys.setrecursionlimit(limit)


def go_where_nothing_is():
    os.mkdir("gone")
    os.chdir("gone")
    os.rmdir(os.getcwd())


@pytest.mark.parametrize(
    "change",
    [
        lambda: np.seterr(all="raise"),
        lambda: warnings.simplefilter("error"),
        lambda: np.random.seed(0),
        lambda: os.environ.clear(),
        go_where_nothing_is,
        lambda: sys.setrecursionlimit(200),
        lambda: print("x" * 10**7),
        lambda: print("\ud800", file=sys.stderr),
    ],
)
def test_what_a_function_changes_around_it_does_not_reach_the_judge(change, as_it_was, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    changed = functools.cache(change)

    def function(scale, img, P):
        changed()
        return patchify(img, P) * np.longdouble(scale)

    assert evaluate("patchify", functools.partial(function, "1"), hidden=True).passed
    assert evaluate("patchify", functools.partial(function, "1e4000"), hidden=True).status == "failed"


def test_what_a_function_prints_is_thrown_away(capfd):
    def function(img, P):
        sys.stdout.buffer.write(b"to the file itself")
        return patchify(img, P)

    assert evaluate("patchify", function, hidden=True).passed
    assert capfd.readouterr() == ("", "")


def test_an_object_put_into_an_argument_may_raise_when_it_is_looked_at():
    class Evil:
        def __array__(self, *args, **kwargs):
            raise SystemExit

    def function(ids, E):
        tokens = embed(ids, E)
        ids[0] = Evil()
        return tokens

    verdict = evaluate("embed", function)
    assert ["changed its argument ids" in failure.message for failure in verdict.failures] == [True]


def test_keyboard_interrupt_passes():
    def function(img, P):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate("patchify", function)


def test_unknown_names():
    with pytest.raises(KeyError):
        evaluate("patchfy", patchify)
    with pytest.raises(CheckFailed, match="no exercise named patchfy; did you mean patchify"):
        check(patchify, "patchfy")


def test_functions_of_every_sort(capsys):
    class New:
        def __new__(cls, img, P):
            return patchify(img, P)

    for function in (functools.partial(patchify), lambda img, P: patchify(img, P), New):
        check(function, "patchify")
    for function in (functools.partial(patchify), lambda img, P: patchify(img, P), "patchify()"):
        with pytest.raises(CheckFailed, match="name the exercise too"):
            check(function)
    with pytest.raises(CheckFailed, match="no exercise named New"):
        check(New)
    with pytest.raises(CheckFailed, match="name the exercise too"):
        check(patchify, 3)
    with pytest.raises(CheckFailed, match="'int' object is not callable"):
        check(3, "patchify")


def test_the_word_to_name_is_looked_for_in_what_the_error_says():
    exercise = Exercise(patchify, points=1, difficulty=1, minutes=1, section="")

    @exercise.visible
    def unknown():
        "A mode that does not exist"
        yield Raises(np.zeros((2, 2, 1)), "mode", naming="mode")
        yield Case(np.zeros((2, 2, 1)), 1)

    def silent(img, mode):
        if mode == "mode":
            raise KeyError("something")  # mode
        return patchify(img, mode)

    def speaking(img, mode):
        if mode == "mode":
            raise KeyError(mode)
        return patchify(img, mode)

    assert judge(exercise, functools.partial(run, speaking)).passed
    assert "should name 'mode' in the error" in judge(exercise, functools.partial(run, silent)).failures[0].message


def test_warnings_and_stderr_cost_nothing(capfd):
    def noisy(img, P):
        import warnings

        warnings.warn("careful", stacklevel=1)
        print("progress", file=sys.stderr)
        return patchify(img, P)

    check(noisy, "patchify")
    assert capfd.readouterr().err == ""
    assert evaluate("patchify", noisy, hidden=True).passed


def test_nan_is_said_first():
    def nan(img_chw, W_conv, b):
        return np.full((3, 3), np.nan)

    with pytest.raises(CheckFailed, match=r"should be finite everywhere; yours has nan at \(0, 0\)"):
        check(nan, "patch_embed_conv")


class EqualToEverything:
    def __eq__(self, other):
        return True

    __hash__ = None


class Lying(np.ndarray):
    def __eq__(self, other):
        return np.ones(self.shape, bool)

    def __sub__(self, other):
        return np.zeros(self.shape)


@pytest.mark.parametrize(
    "answer", [EqualToEverything(), np.zeros((1, 12)).view(Lying), np.float64("nan"), "right", {}, 3j]
)
def test_objects_that_lie(answer):
    assert evaluate("patchify", lambda img, P: answer, hidden=True).score == 0.0


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "None (is there a return?)"),
        ({"a": 1}, "a dict"),
        (patchify, "a function"),
        ([[1], [1, 2]], "a list of rows of unequal length"),
        ([np.zeros(2), np.zeros(3)], "a list of rows of unequal length"),
        (np.array([None, 2]), "an ndarray of object that is no array of real numbers"),
        (np.array(["a"]), "an ndarray of str32 that is no array of real numbers"),
        (1j, "a complex that is no array of real numbers"),
        (10**30, "an integer beyond 64 bits"),
        ([10**30], "a list that is no array of real numbers"),
        (datetime.datetime.now(), "a datetime that is no array of real numbers"),
        (np.datetime64("2020"), "a datetime64 that is no array of real numbers"),
        ((i for i in range(3)), "a generator that is no array of real numbers"),
    ],
)
def test_what_is_no_array_of_numbers(answer, words):
    assert plain(answer) == Odd(words)


@pytest.mark.parametrize("one", [np.array, np.int8, np.uint64, np.matrix, memoryview, np.ma.masked_array])
def test_what_is_one(one):
    answer = plain(one(np.array(7)))
    assert type(answer) is np.ndarray
    assert answer.ravel().tolist() == [7]


@pytest.mark.parametrize(("convert", "words"), [(bool, "a boolean, True"), (float, "a float, 197"), (str, "a str")])
def test_the_kind_counts(convert, words):
    verdict = evaluate("patch_token_count", lambda *args, **kwargs: convert(patch_token_count(*args, **kwargs)))
    assert verdict.score == 0.0
    assert words in verdict.failures[0].message


def test_message_names_call_values_and_mistake():
    def mixed(img_chw, W_conv, b):
        return patchify(img_chw.transpose(1, 2, 0), W_conv.shape[-1]) @ W_conv.reshape(len(W_conv), -1).T + b

    with pytest.raises(CheckFailed) as error:
        check(mixed, "patch_embed_conv")
    message = str(error.value)
    assert message.startswith(
        "patch_embed_conv(img_chw of shape (3, 4, 6), W_conv of shape (2, 3, 2, 2), b=[100.0, -30.0]): row 0"
    )
    assert "You mixed the two flatten orders" in message
    assert message.endswith("See: A convolution in disguise")
    assert error.value._render_traceback_() == [message]  # a notebook shows this and no frames of ours


def test_line_of_the_learners_error():
    def broken(img, P):
        H, W, C = img.shape
        return img.reshape(H, P, W, P, C)

    with pytest.raises(CheckFailed, match=r"raised ValueError: cannot reshape .* \(line \d+: return img.reshape"):
        check(broken, "patchify")


def test_an_error_of_the_same_class_names_no_mistake():
    """A bias along the tokens ends in a ValueError of NumPy too, but so does many another mistake."""

    def windows_beyond_the_edge(img_chw, W_conv, b):
        P = W_conv.shape[-1]
        rows, columns = (range(0, side, P) for side in img_chw.shape[1:])
        return np.array([(W_conv * img_chw[:, r : r + P, c : c + P]).sum((1, 2, 3)) + b for r in rows for c in columns])

    def bias_along_tokens(img_chw, W_conv, b):
        return patch_embed_conv(img_chw, W_conv, 0 * b) + b[:, None]

    for function, name in ((windows_beyond_the_edge, None), (bias_along_tokens, "bias along the tokens")):
        first = evaluate("patch_embed_conv", function).failures[0]
        assert "raised ValueError: operands could not be broadcast" in first.message
        assert first.misconception == name


EXPECTED = np.array([[1.0, 2.0], [3.0, 5.0], [4.0, 0.5]])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (EXPECTED * -1, "with the sign turned"),
        (EXPECTED * 4, "times 4"),
        (EXPECTED[::-1], "rows from last to first"),
        (EXPECTED[[1, 0, 2]], "right rows in another order"),
        (EXPECTED[:, ::-1], "right columns in another order"),
    ],
)
def test_patterns(answer, words):
    assert words in pattern(answer, EXPECTED, 1e-9)


def test_no_pattern_in_a_single_number():
    assert pattern(np.array([0.0, 3.0]), np.array([0.0, 2.0]), 1e-9) == ""
    assert pattern(EXPECTED.astype(int), np.trunc(EXPECTED), 1e-9) == ""


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (EXPECTED.T, "should have shape (3, 2); yours has (2, 3) (the axes in reverse)"),
        (EXPECTED.ravel(), "as many numbers, arranged otherwise"),
        (EXPECTED[:2], "should have shape (3, 2); yours has (2, 2)"),
        (EXPECTED.astype(int), "should be of floats; yours is of integers"),
        (EXPECTED + [[0, 0], [0, 1e-6], [0, 0]], "row 1 should be [3, 5]; yours is [3, 5.000001]"),
        (EXPECTED + [[0, 0], [0, 1], [0, 0]], "row 1 should be [3, 5]; yours is [3, 6]"),
        (np.array(7.0), "yours is one number, 7"),
    ],
)
def test_differences(answer, words):
    assert words in difference(answer, EXPECTED, 1e-9)


def test_tolerance_follows_the_width_of_the_right_answer():
    narrow = EXPECTED.astype(np.float32)
    for answer in (EXPECTED * (1 + 3e-5), narrow * np.float32(1 + 3e-5)):
        assert difference(answer, narrow, 1e-9) is None
        assert difference(answer, EXPECTED, 1e-9)
    assert difference(EXPECTED * (1 + 3e-3), narrow, 1e-9)
    assert difference(EXPECTED * (1 + 1e-10), EXPECTED, 1e-9) is None
    assert difference(EXPECTED * (1 + 3e-8), EXPECTED, 1e-9)


def test_import_stays_light():
    code = (
        "import sys, autograder; autograder.judging.exercise.names();"
        "print([m for m in ('torch', 'scipy', 'nbgrader', 'nbformat', 'dask', 'distributed', 'IPython', 'jupytext')"
        " if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_embedding_takes_any_bias_shape_error():
    with pytest.raises(ValueError, match=r"b must have shape \(2,\).*\(3,\)"):
        patch_embed_conv(np.zeros((3, 4, 4)), np.zeros((2, 3, 2, 2)), np.zeros(3))


def mean_then_norm(*_, **__):
    """A stub of another exercise."""
    raise NotImplementedError


def norm_then_mean(*_):
    raise NotImplementedError("still to do")


def through_a_helper(*args):
    return [norm_then_mean(*row) for row in [args]]


@pytest.mark.parametrize(
    ("function", "named"),
    [(lambda *args: mean_then_norm(*args), "mean_then_norm"), (through_a_helper, "norm_then_mean")],
)
def test_a_stub_of_another_exercise_is_named(function, named):
    verdict = evaluate("map_head", function, hidden=True)
    assert (verdict.status, verdict.score) == ("failed", 0.0)
    assert f"calls {named}, which is not written yet" in verdict.failures[0].message


@pytest.mark.parametrize("wrap", [lambda f: f, functools.partial, functools.wraps(mean_then_norm)])
def test_a_stub_of_its_own_is_not_written(wrap):
    assert evaluate("mean_then_norm", wrap(mean_then_norm)).status == "not written"


def test_a_stub_that_is_called_in_one_case_only():
    def token_ids(text, vocabulary):
        return [vocabulary[word] for word in text.split()] if text else mean_then_norm()

    verdict = evaluate("token_ids", token_ids)
    assert verdict.status == "partly passed"
    assert any("calls mean_then_norm, which is not written yet" in failure.message for failure in verdict.failures)


def test_our_own_answers_are_made_once_and_every_call_gets_its_own_inputs():
    asked, seen = [], []

    def double(x):
        asked.append(x)
        return 2 * x

    def spoiler(x):
        seen.append(x.copy())
        x *= 2
        return x

    exercise = Exercise(double, points=1, difficulty=1, minutes=1, section="")

    @exercise.hidden
    def any_x(rng):
        """Any x."""
        yield Case(rng.normal(size=3))
        yield Case(rng.normal(size=2))

    verdicts = [judge(exercise, functools.partial(run, spoiler), hidden=True, seed=seed) for seed in (7, 7, 8)]
    assert [verdict.score for verdict in verdicts] == [0.5] * 3  # right values, changed inputs
    assert len(asked) == 4  # two cases of two seeds
    assert [list(x) for x in seen[:2]] == [list(x) for x in seen[2:4]]
    assert list(seen[0]) != list(seen[4])
