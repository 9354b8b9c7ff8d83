"""Sine-cosine positions against values that the code did not make."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder import evaluate
from solutions.sincos import offset_rotation, position_angle, position_similarity, sincos_1d

FUNCTIONS = [sincos_1d, offset_rotation, position_similarity, position_angle]
few = settings(max_examples=40, deadline=None, derandomize=True)
positions = st.floats(-1000, 1000)
widths = st.integers(1, 40).map(lambda pairs: 2 * pairs)
bases = st.floats(2, 1e6)


def slow_vector(p, d, base):
    """The definition by entries, one at a time: entry i belongs to pair i // 2."""
    vector = []
    for i in range(d):
        angle = p / base ** (2 * (i // 2) / d)
        vector.append(math.sin(angle) if i % 2 == 0 else math.cos(angle))
    return vector


def test_the_published_table_of_width_4():
    table = [[0, 1, 0, 1], [0.841471, 0.540302, 0.010000, 0.999950], [0.909297, -0.416147, 0.019999, 0.999800]]
    np.testing.assert_allclose(sincos_1d([0, 1, 2], 4), table, rtol=0, atol=5e-7)


def test_the_cat_sat():
    rows = {1996: [0.2, 0.5, -0.3, 0.1], 4937: [0.8, -0.2, 0.4, 0.6], 2938: [-0.1, 0.7, 0.2, -0.4]}
    summed = np.array([rows[i] for i in (1996, 4937, 2938)]) + sincos_1d(range(3), 4)
    expected = [[0.2, 1.5, -0.3, 1.1], [1.6415, 0.3403, 0.4100, 1.6000], [0.8093, 0.2839, 0.2200, 0.5998]]
    np.testing.assert_allclose(summed, expected, rtol=0, atol=5.01e-5)


@few
@given(positions, widths, bases)
def test_entries_follow_the_definition(p, d, base):
    np.testing.assert_allclose(sincos_1d(p, d, base), slow_vector(p, d, base), rtol=0, atol=1e-11)


@few
@given(positions, positions, widths, bases)
def test_the_rotation_moves_every_position(p, offset, d, base):
    R = offset_rotation(offset, d, base)
    np.testing.assert_allclose(R @ sincos_1d(p, d, base), sincos_1d(p + offset, d, base), rtol=0, atol=1e-10)


@few
@given(positions, positions, widths)
def test_rotations_form_a_group(one, other, d):
    both = offset_rotation(one, d) @ offset_rotation(other, d)
    np.testing.assert_allclose(both, offset_rotation(one + other, d), rtol=0, atol=1e-10)
    back = offset_rotation(one, d).T
    np.testing.assert_allclose(back, offset_rotation(-one, d), rtol=0, atol=1e-12)
    np.testing.assert_allclose(back @ offset_rotation(one, d), np.eye(d), rtol=0, atol=1e-12)


def test_a_block_by_hand():
    c, s, c_slow, s_slow = math.cos(3), math.sin(3), math.cos(0.03), math.sin(0.03)
    expected = [[c, s, 0, 0], [-s, c, 0, 0], [0, 0, c_slow, s_slow], [0, 0, -s_slow, c_slow]]
    np.testing.assert_allclose(offset_rotation(3, 4), expected, rtol=0, atol=1e-15)


@few
@given(positions, positions, widths, bases)
def test_similarity_and_angle_are_those_of_the_vectors(p, q, d, base):
    one, other = np.array(slow_vector(p, d, base)), np.array(slow_vector(q, d, base))
    assert position_similarity(q - p, d, base) == pytest.approx(one @ other, abs=1e-9)
    # The angle from the two chords |u - v| and |u + v|, which loses no digits near 0 or pi
    angle = 2 * math.atan2(np.linalg.norm(one - other), np.linalg.norm(one + other))
    assert position_angle(q - p, d, base) == pytest.approx(angle, abs=1e-7)


@few
@given(positions, widths, bases)
def test_bounds(offset, d, base):
    similarity = position_similarity(offset, d, base)
    assert abs(similarity) <= d / 2
    assert position_similarity(-offset, d, base) == similarity
    assert 0 <= position_angle(offset, d, base) <= math.pi


def test_figures_of_the_chapter():
    assert position_similarity(0, 768) == 384
    assert position_similarity(1, 4) == pytest.approx(0.5403023059 + 0.9999500004, abs=1e-9)
    assert position_angle(4.0, 2) == pytest.approx(2 * math.pi - 4)
    distances = np.sqrt(64 - 2 * position_similarity(np.arange(8), 64))
    assert (np.diff(distances[:6]) > 0).all()
    assert distances[6] < distances[5], "closeness is not monotone: 6 steps apart is nearer than 5"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_dtypes(function):
    assert function(3, 6).dtype == np.float64
    assert function(np.int16(3), 6).dtype == np.float64
    assert function(np.float32(3), 6).dtype == np.float32
    np.testing.assert_allclose(function(np.float32(3), 6), function(3, 6), rtol=0, atol=1e-6)
    if function is not offset_rotation:
        assert function([1, 2], 6).dtype == np.float64
        assert function(np.array([1, 2], dtype=np.float32), 6).dtype == np.float32


@pytest.mark.parametrize("function", [sincos_1d, position_similarity, position_angle])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3), (4, 1, 2)])
def test_shapes(function, shape):
    tail = (6,) if function is sincos_1d else ()
    assert np.shape(function(np.ones(shape), 6)) == shape + tail


def test_one_number_gives_a_float():
    assert isinstance(position_similarity(2, 6), float)
    assert isinstance(position_angle(2.0, 6), float)


def test_single_precision_positions_keep_their_angle():
    # 16,777,215 is the last odd number that float32 holds; its product with a float32 frequency would be rounded
    p = np.float32(16_777_215)
    np.testing.assert_allclose(sincos_1d(p, 64), slow_vector(16_777_215, 64, 1e4), rtol=0, atol=1e-7)


def test_angle_of_nearly_equal_positions_in_single_precision():
    offset = np.float32(0.001)
    assert position_angle(offset, 4) == pytest.approx(position_angle(0.001, 4), rel=1e-5)


@pytest.mark.parametrize("function", [sincos_1d, position_similarity, position_angle])
def test_inputs_are_not_changed(function):
    given_array, given_list = np.array([1.0, 2.0, 3.0]), [1, 2, 3]
    function(given_array, 6)
    function(given_list, 6)
    assert given_array.tolist() == [1, 2, 3] and given_list == [1, 2, 3]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("arguments", "named", "value"),
    [
        ((1.0, 5), "d", "5"),
        ((1.0, 0), "d", "0"),
        ((1.0, -2), "d", "-2"),
        ((1.0, 4.0), "d", "4.0"),
        ((1.0, 4, 0.0), "base", "0.0"),
        ((1.0, 4, -10.0), "base", "-10.0"),
        ((1.0, 4, float("nan")), "base", "nan"),
        ((float("inf"), 4), None, "inf"),
        ((float("nan"), 4), None, "nan"),
        (("three", 4), None, "three"),
        ((True, 4), None, "True"),
        ((1j, 4), None, "1j"),
    ],
)
def test_what_makes_no_sense_is_refused(function, arguments, named, value):
    named = named or ("positions" if function is sincos_1d else "offset")
    with pytest.raises(ValueError, match=rf"^{named} must .*{value}"):
        function(*arguments)


def test_a_rotation_wants_one_offset():
    with pytest.raises(ValueError, match=r"^offset must be one finite number, not \[1 2\]"):
        offset_rotation([1, 2], 4)


# Right answers that are written otherwise must earn full marks.


def torch_table(positions, d, base=10000.0):
    if d % 2:
        raise AssertionError
    positions = torch.as_tensor(positions, dtype=torch.float32)
    angles = positions[..., None] * torch.exp(torch.arange(0, d, 2) * (-math.log(base) / d))
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)


def rotation_from_complex_numbers(offset, d, base=10000.0):
    # sin + i cos of a position turns by exp(-i angle)
    turn = np.exp(-1j * offset * base ** (-2 * np.arange(d // 2) / d))
    return np.kron(np.diag(turn.real), np.eye(2)) + np.kron(np.diag(turn.imag), [[0, -1], [1, 0]])


def similarity_from_vectors(offset, d, base=10000.0):
    here, there = sincos_1d(17.0, d, base), sincos_1d(17.0 + np.asarray(offset, dtype=float), d, base)
    return there @ here


def angle_from_the_distance(offset, d, base=10000.0):
    distance = np.linalg.norm(sincos_1d(np.asarray(offset, dtype=float), d, base) - sincos_1d(0.0, d, base), axis=-1)
    return 2 * np.arcsin(distance / np.sqrt(2 * d))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("sincos_1d", torch_table),
        ("offset_rotation", rotation_from_complex_numbers),
        ("position_similarity", similarity_from_vectors),
        ("position_angle", angle_from_the_distance),
    ],
)
def test_other_right_answers_pass(name, function, seed):
    verdict = evaluate(name, function, hidden=True, seed=seed)
    assert verdict.passed, verdict.failures
