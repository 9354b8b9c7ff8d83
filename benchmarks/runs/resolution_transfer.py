"""Test the models of `position_ablation.py` on other image sizes and train them on a little there.

    OMP_NUM_THREADS=1 python benchmarks/runs/resolution_transfer.py 0 1 2

takes the seeds, and about three minutes of one core for each and ten for the first, whose models are
trained on. Models that do not lie in `_build/runs` are trained first.
"""

import copy
import dataclasses
import sys

import torch
from position_ablation import MODEL, N_TEST, N_TRAIN, RECIPE, RESULTS, first, kept, name_of, trained

from solutions.small_vit import SmallViT
from solutions.training import Recipe, evaluate, load_data, pick_machine, train, write_result

SIZES = (20, 24, 28, 32, 36, 40, 48, 56)  # pixels; the models know 28
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
# The same 500 steps of 32 images for each, at a tenth of the first learning rate
NEW_SIZE = 40
TUNING = Recipe(epochs=2, batch_size=32, learning_rate=4e-4, shift=0, flip=False, image_size=NEW_SIZE)
N_TUNING = 8_000


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


def main(seeds):
    path, machine = RESULTS / "resolution_transfer.json", pick_machine()
    data = load_data("fashion_mnist", N_TRAIN)
    few = first(data, N_TEST)
    little = dataclasses.replace(
        few, train_images=few.train_images[:N_TUNING], train_labels=few.train_labels[:N_TUNING]
    )

    def write(name, run):
        settings = {"data": "fashion_mnist", "n_train": N_TRAIN, "n_test": N_TEST, "n_tuning": N_TUNING}
        settings |= {"model": MODEL, "recipe": RECIPE, "tuning": TUNING}
        write_result(path, kept(path) | {name: run}, machine, **settings)
        print(name, run, flush=True)

    for seed in seeds:
        for way in WAYS:
            name = name_of(seed, **way)
            if name in kept(path):
                continue
            model, _ = trained(data, seed, positions=way["positions"])
            model = in_the_way(model, **way)
            accuracy = {size: evaluate(model, few, machine, size) for size in SIZES}
            write(name, way | {"seed": seed, "accuracy": accuracy})
    for seed in seeds:
        for way in WAYS:
            name = "tuned-" + name_of(seed, **way)
            if name in kept(path):
                continue
            model, _ = trained(data, seed, positions=way["positions"])
            model = in_the_way(model, **way)
            torch.manual_seed(seed)
            recipe = dataclasses.replace(TUNING, seed=seed)
            before = evaluate(model, few, machine, NEW_SIZE)
            history = train(model, little, recipe, machine, progress=False)
            after = [epoch["accuracy"] for epoch in history]
            write(name, way | {"seed": seed, "accuracy": [before, *after]})


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or [0, 1, 2])
