"""The exercises of the chapter *Frames*."""

import numpy as np

from autograder.judging.exercise import Case, Exercise, Raises
from solutions import framing as chapter

# ------------------------------------------------------------------------------------------- frame_count

frame_count = Exercise(
    chapter.frame_count,
    points=1,
    difficulty=1,
    minutes=5,
    section="Count",
    returns="a number",
)


@frame_count.visible
def by_hand():
    "Ten samples in frames of four"
    yield Case(10, 4, 3, why="frames begin at 0, 3 and 6; the last just fits")
    yield Case(10, 4, 4, why="a frame at 8 would need two samples more")
    yield Case(3, 8, 2, why="three samples hold no frame of eight")


@frame_count.hidden
def any_signal(rng):
    "Any signal"
    for hop in (1, 5, 160):
        yield Case(int(rng.integers(1000, 2000)), 400, hop)
    yield Case(400, 400, 160)
    yield Case(int(rng.integers(1, 100)), 400, 30)


@frame_count.misconception("the first one forgotten")
def without_the_first(n, length, hop):
    """You counted how often a frame can be moved on.
    There is one before the first move, too: add 1."""
    return max(0, (n - length) // hop)


@frame_count.misconception("rounded up")
def rounded_up(n, length, hop):
    """You counted a last frame that reaches beyond the signal. Round down: only whole frames count."""
    return max(0, 1 - (length - n) // hop)


@frame_count.misconception("no overlap")
def without_overlap(n, length, hop):
    """You divided by the length of a frame. The next frame begins after the hop: divide by that."""
    return n // length


@frame_count.misconception("every start")
def every_start(n, length, hop):
    """You counted every place where a frame could begin. The last ones have no room for a whole frame: take the length
    away first."""
    return -(-n // hop)


@frame_count.misconception("fewer than none")
def negative(n, length, hop):
    """A signal that is shorter than one frame has 0 frames, and you gave fewer."""
    return 1 + (n - length) // hop


# ------------------------------------------------------------------------------------------------ frames

frames = Exercise(chapter.frames, points=2, difficulty=2, minutes=10, section="Cut")


@frames.where
def sample_of_frame(index, x, length, hop):
    return f"sample {index[1]} of frame {index[0]}"


@frames.visible
def numbered():
    "Ten samples that say their own number"
    yield Case(np.arange(10.0), 4, 3, why="each number says which sample it was")
    yield Case(np.arange(9.0), 2, 3, why="where the hop is longer than a frame, samples are left out")


@frames.visible
def too_short():
    "A signal shorter than a frame"
    yield Raises(np.arange(3.0), 4, 1, why="three samples hold no frame of four")
    yield Case(np.arange(4.0), 4, 3, why="one frame just fits")


@frames.hidden(weight=2)
def any_frames(rng):
    "Any signal"
    yield Case(rng.normal(size=53), 10, 4)
    yield Case(rng.normal(size=40), 7, 1)
    yield Case(rng.normal(size=31).astype(np.float32), 5, 9)


@frames.misconception("no overlap")
def end_to_end(x, length, hop):
    """Your frames lie end to end. Each begins a hop after the one before it, so that they overlap where the hop is
    shorter than a frame."""
    return chapter.frames(x, length, length)


@frames.misconception("padded")
def padded(x, length, hop):
    """You filled up a last frame with zeros. Samples after the last whole frame are dropped."""
    count = 1 + max(0, -((length - len(x)) // hop))
    return chapter.frames(np.pad(x, (0, max(0, (count - 1) * hop + length - len(x)))), length, hop)


@frames.misconception("time along the rows")
def frames_in_columns(x, length, hop):
    """Your frames stand in columns. Here each frame is a row."""
    return chapter.frames(x, length, hop).T


@frames.misconception("overlap for hop")
def hop_is_overlap(x, length, hop):
    """You took the hop for the overlap. The hop is how far the next frame is moved on; what two frames share is the
    length less the hop."""
    return chapter.frames(x, length, max(1, length - hop))


@frames.misconception("centred")
def centred(x, length, hop):
    """You put zeros before and after the signal, so that frames are centred on their samples, as some libraries do.
    Here the first frame begins at the first sample."""
    return chapter.frames(np.pad(x, length // 2), length, hop)


# ------------------------------------------------------------------------------------------- overlap_add

overlap_add = Exercise(chapter.overlap_add, points=2, difficulty=2, minutes=10, section="Put together")


@overlap_add.visible
def two_frames():
    "Two frames of three, and two that do not touch"
    yield Case(np.array([[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]), 1, why="samples 1 and 2 lie in both frames")
    yield Case(np.array([[1.0, 2.0], [3.0, 4.0]]), 3, why="no frame reaches sample 2, so it is 0")


@overlap_add.hidden
def any_rows(rng):
    "Any frames"
    yield Case(rng.normal(size=(6, 10)), 4)
    yield Case(rng.normal(size=(3, 5)).astype(np.float32), 2)
    yield Case(rng.normal(size=(1, 8)), 3)


@overlap_add.misconception("end to end")
def laid_end_to_end(rows, hop):
    """You laid the frames end to end. Each belongs a hop after the one before it."""
    return rows.reshape(-1)


@overlap_add.misconception("overwritten")
def overwritten(rows, hop):
    """Your later frames replace what the earlier ones left. Where frames overlap, add them."""
    x = np.zeros((len(rows) - 1) * hop + rows.shape[1])
    for k, row in enumerate(rows):
        x[k * hop : k * hop + len(row)] = row
    return x


@overlap_add.misconception("averaged")
def averaged(rows, hop):
    """You divided by the number of frames that a sample lies in. Here they are added and nothing more."""
    counted = chapter.overlap_add(np.ones_like(rows), hop)
    return chapter.overlap_add(rows, hop) / np.maximum(counted, 1)


@overlap_add.misconception("the end cut off")
def cut_off(rows, hop):
    """Your signal ends a hop after the last frame began. The last frame is there whole."""
    return chapter.overlap_add(rows, hop)[: len(rows) * hop]
