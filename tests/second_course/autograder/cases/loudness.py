"""The exercise of the chapter *Loudness*."""

import torch

from autograder.judging.exercise import Case, Exercise
from solutions import loudness as chapter


def normal(rng, *shape):
    return torch.from_numpy(rng.normal(size=shape))


level = Exercise(chapter.level, points=3, difficulty=2, minutes=10, section="Decibels")


@level.visible
def known_levels():
    "Frames whose levels you know"
    yield Case(torch.tensor([[1.0, -1.0, 1.0], [0.1, 0.1, -0.1]]), why="mean squares of 1 and 0.01, hence 0 and −20 dB")
    yield Case(torch.tensor([[0.0, 2.0]]), why="the mean square is 2, the peak 2, and the mean 1")


@level.visible
def silence():
    "Silence, and a floor of its own"
    yield Case(torch.tensor([[0.0, 0.0], [1e-4, 1e-4], [1.0, 0.5]]), why="0 has no logarithm, and −80 dB is too low")
    yield Case(torch.tensor([[0.0, 0.0], [0.1, 0.3]]), -12.0, why="both lie under the floor; the last must, too")
    yield Case(torch.tensor([[0.5, 0.3]]), -12.0, why="this one lies above it")


@level.hidden(weight=2)
def any_batch(rng):
    "Batches of any shape"
    yield Case(normal(rng, 2, 3, 50))
    yield Case(0.1 * normal(rng, 5, 8).float())
    yield Case(normal(rng, 7), -1000.0)


@level.misconception("half as loud")
def of_the_root(rows, floor=-60.0):
    """You took the root first and then 10 times the logarithm. For the mean square it is 10, for its root it is 20."""
    return (10 * torch.log10(rows.square().mean(dim=-1).sqrt())).clamp(min=floor)


@level.misconception("twice as loud")
def twenty_of_the_square(rows, floor=-60.0):
    """You took 20 times the logarithm of the mean square. The 20 belongs to its root; here it is 10."""
    return (20 * torch.log10(rows.square().mean(dim=-1))).clamp(min=floor)


@level.misconception("natural logarithm")
def natural(rows, floor=-60.0):
    """You took the natural logarithm. Decibels are counted with the decimal one, `log10`."""
    return (10 * torch.log(rows.square().mean(dim=-1))).clamp(min=floor)


@level.misconception("the whole batch")
def whole_batch(rows, floor=-60.0):
    """You took the mean over the whole batch. Each frame has a level of its own: give `mean` the last axis."""
    return (10 * torch.log10(rows.square().mean())).clamp(min=floor).expand(rows.shape[:-1])


@level.misconception("the sum")
def summed(rows, floor=-60.0):
    """You added the squares up. A longer frame is not louder: take their mean."""
    return (10 * torch.log10(rows.square().sum(dim=-1))).clamp(min=floor)


@level.misconception("no floor")
def without_floor(rows, floor=-60.0):
    """Nothing holds your levels above `floor`."""
    return 10 * torch.log10(rows.square().mean(dim=-1))
