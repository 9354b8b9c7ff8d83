"""Test the models of `position_ablation.py` on other image sizes and train them on a little there.

    OMP_NUM_THREADS=1 python benchmarks/runs/resolution_transfer.py 0 1 2

takes the seeds: the models of all are tested at every size, those of the first are trained on at a new one.
Models that do not lie in `_build/runs` are trained first.
"""

import copy
import dataclasses
import sys

import torch.nn.functional as F
from position_ablation import MODEL, N_TRAIN, RECIPE, RESULTS, first, kept, name_of, trained

from book.gpu.data import load_data
from book.gpu.training import Recipe, evaluate, pick_machine, train, write_result
from solutions.small_vit import POSITIONS, SmallViT

N_TEST = 1_000
SIZES = (20, 24, 28, 32, 40, 48, 56)  # pixels; the models know 28
MOVES = (0, 1, 2, 3, 4)  # pixels; four are a patch
# How a scheme answers on a grid that it was not trained on
WAYS = (
    {"positions": "none"},
    {"positions": "learned"},
    {"positions": "factorized"},
    *(
        {"positions": positions, "coordinates": coordinates}
        for positions in ("sincos", "axial", "mixed")
        for coordinates in ("absolute", "relative")
    ),
    {"positions": "sincos", "coordinates": "table"},
)
# 250 steps of 32 images at a tenth of the learning rate that the models were trained with
NEW_SIZE = 40
N_TUNING = 4_000
TUNING = Recipe(epochs=2, batch_size=32, learning_rate=4e-4, shift=0, flip=False, image_size=NEW_SIZE)


def as_table(model):
    """A model with the sines and cosines of another in a table of its own, which is interpolated."""
    other = SmallViT(**(model.settings | {"positions": "learned"}))
    other.load_state_dict(model.state_dict() | {"pos_embed": model.position_table(model.grid)})
    return other


def in_the_way(model, positions, coordinates=None):
    """A copy of a trained model that answers on new grids as named."""
    if coordinates == "table":
        return as_table(model)
    model = copy.deepcopy(model)
    model.coordinates = coordinates or model.coordinates
    return model


def write(name, run):
    """Add a run to the results."""
    path = RESULTS / "resolution_transfer.json"
    settings = {"data": "fashion_mnist", "n_train": N_TRAIN, "n_test": N_TEST, "n_tuning": N_TUNING}
    settings |= {"model": MODEL, "recipe": RECIPE, "tuning": TUNING, "new_size": NEW_SIZE}
    write_result(path, kept(path) | {name: run}, pick_machine(), **settings)
    print(name, run["accuracy"], flush=True)


def missing(prefix, seeds, ways):
    """Names, ways and seeds of the runs that are not in the results yet."""
    runs = [(prefix + name_of(seed, **way), way, seed) for seed in seeds for way in ways]
    return [run for run in runs if run[0] not in kept(RESULTS / "resolution_transfer.json")]


def test(data, seeds):
    """Each way at every size."""
    few = first(data, N_TEST)
    for name, way, seed in missing("", seeds, WAYS):
        model = in_the_way(trained(data, seed, positions=way["positions"])[0], **way)
        accuracy = {size: evaluate(model, few, image_size=size) for size in SIZES}
        write(name, way | {"seed": seed, "accuracy": accuracy})


def there_and_back(data, size):
    """The same data, its test images resized to a side and back: what resizing itself destroys."""
    images, sides = data.test_images.float(), data.sizes["image_size"]
    for new in ((size, size), sides):
        images = F.interpolate(images, new, mode="bilinear", antialias=True)
    return dataclasses.replace(data, test_images=images)


def moved(data, pixels):
    """The same data, its test images moved to the right by some pixels, with zeros on the left."""
    return dataclasses.replace(data, test_images=F.pad(data.test_images, (pixels, -pixels)))


def test_controls(data, seeds):
    """Each scheme on its own grid, with images that have been at every size, and with moved ones."""
    few = first(data, N_TEST)
    controls = (("blurred-", there_and_back, SIZES), ("moved-", moved, MOVES))
    for prefix, change, amounts in controls:
        for name, way, seed in missing(prefix, seeds, [{"positions": positions} for positions in POSITIONS]):
            model, _ = trained(data, seed, **way)
            accuracy = {amount: evaluate(model, change(few, amount)) for amount in amounts}
            write(name, way | {"seed": seed, "accuracy": accuracy})


def tune(data, seeds):
    """Each way before, half-way through and after a short training at the new size."""
    few = first(data, N_TEST)
    little = dataclasses.replace(
        few, train_images=few.train_images[:N_TUNING], train_labels=few.train_labels[:N_TUNING]
    )
    for name, way, seed in missing("tuned-", seeds, WAYS):
        model = in_the_way(trained(data, seed, positions=way["positions"])[0], **way)
        before = evaluate(model, few, image_size=NEW_SIZE)
        history = train(model, little, dataclasses.replace(TUNING, seed=seed), progress=False)
        write(name, way | {"seed": seed, "accuracy": [before, *(epoch["accuracy"] for epoch in history)]})


if __name__ == "__main__":
    data = load_data("fashion_mnist", N_TRAIN)
    seeds = [int(seed) for seed in sys.argv[1:]] or [0, 1, 2]
    test(data, seeds)
    test_controls(data, seeds)
    tune(data, seeds[:1])
