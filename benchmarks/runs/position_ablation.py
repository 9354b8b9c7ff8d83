"""Train the models of the chapter *Do positions matter?* and write what they reach.

    OMP_NUM_THREADS=1 python benchmarks/runs/position_ablation.py 0 1 2

takes the seeds, and about ten minutes of one core for each. A run that was cut off
goes on where it stopped: results are written after every model, and the models stay in
`_build/runs`, from which `resolution_transfer.py` takes them.
"""

import dataclasses
import json
import sys
from pathlib import Path

import torch

from book.gpu.augmentation import generator_for
from book.gpu.data import load_data
from book.gpu.training import Recipe, evaluate, pick_machine, train, write_result
from solutions.small_vit import POSITIONS, SmallViT

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "book" / "gpu" / "results"
MODELS = ROOT / "_build" / "runs"

N_TRAIN = 20_000
N_TEST = 2_000  # of each epoch and each new size; an accuracy at the end is that of all 10,000
MODEL = {"patch_size": 4, "d": 48, "depth": 2, "n_heads": 3, "d_ff": 96, "pooling": "mean_then_norm"}
RECIPE = Recipe(epochs=3, batch_size=128, learning_rate=4e-3, shift=0, flip=False)

SCHEMES = [{"positions": positions} for positions in POSITIONS]
HEADS = [
    {"positions": "axial", "pooling": "cls"},
    {"positions": "axial", "pooling": "norm_then_mean"},
    {"positions": "axial", "pooling": "map"},
    {"positions": "axial", "pooling": "mean_then_norm", "registers": 4},
]
# Without positions a shuffle changes nothing at all, so "none" need not be trained again
SHUFFLED = [{"positions": positions, "shuffled": True} for positions in POSITIONS[1:]]

# Tables that start as large as the tokens, in place of the usual 0.02
LOUD = [{"positions": positions, "table_std": 0.5} for positions in ("factorized", "learned")]


def shuffle_patches(images, P, orders):
    """Put the patches of each image in another order.

    Parameters
    ----------
    images : tensor, shape (B, C, H, W)
    P : int
        Side of a patch; it divides H and W.
    orders : tensor of int64, shape (B, N_p)
        Place i gets the patch that stood at `orders[b, i]`, both in raster order.

    Returns
    -------
    tensor, shape (B, C, H, W)
    """
    B, C, H, W = images.shape
    patches = images.reshape(B, C, H // P, P, W // P, P).permute(0, 2, 4, 1, 3, 5)
    patches = patches.reshape(B, -1, C, P, P)  # (B, N_p, C, P, P)
    patches = patches[torch.arange(B)[:, None], orders]
    patches = patches.reshape(B, H // P, W // P, C, P, P).permute(0, 3, 1, 4, 2, 5)
    return patches.reshape(B, C, H, W)


def random_orders(B, N_p, seed):
    """An order of the patches for each image, (B, N_p)."""
    return torch.rand(B, N_p, generator=generator_for(seed)).argsort(dim=1)


def shuffle_all(data, P):
    """The same data, all images cut up and put together in one fixed order."""
    H, W = data.sizes["image_size"]
    order = random_orders(1, (H // P) * (W // P), 7)
    parts = {name: getattr(data, name) for name in ("train_images", "test_images")}
    return dataclasses.replace(data, **{n: shuffle_patches(x, P, order.expand(len(x), -1)) for n, x in parts.items()})


def name_of(seed, **settings):
    """What a run is called in the results and its model in `_build/runs`, such as "axial-cls-0"."""
    return "-".join(["shuffled" if value is True else str(value) for value in settings.values()] + [str(seed)])


def trained(data, seed, **settings):
    """The model with these settings, trained or from `_build/runs` if it lies there, and its history."""
    options = {key: value for key, value in settings.items() if key not in ("shuffled", "table_std")}
    torch.manual_seed(seed)
    model = SmallViT(**data.sizes, **(MODEL | options))
    if "table_std" in settings:
        model.reset_parameters(settings["table_std"])
    recipe, checkpoint = dataclasses.replace(RECIPE, seed=seed), MODELS / f"{name_of(seed, **settings)}.pt"
    return model, train(model, first(data, N_TEST), recipe, checkpoint=checkpoint, progress=False)


def first(data, n):
    """The same data with the first n test images."""
    return dataclasses.replace(data, test_images=data.test_images[:n], test_labels=data.test_labels[:n])


def kept(path):
    """The results that a file holds already."""
    return json.loads(path.read_text())["results"] if path.exists() else {}


def main(seeds):
    path, machine = RESULTS / "position_ablation.json", pick_machine()
    data = load_data("fashion_mnist", N_TRAIN)
    P, (H, W) = MODEL["patch_size"], data.sizes["image_size"]
    in_disorder = shuffle_all(data, P)
    orders = random_orders(len(data.test_images), (H // P) * (W // P), 8)
    mixed_up = dataclasses.replace(data, test_images=shuffle_patches(data.test_images, P, orders))
    for seed in seeds:
        for settings in SCHEMES + SHUFFLED + HEADS + LOUD:
            name, shuffled = name_of(seed, **settings), "shuffled" in settings
            if name in kept(path):
                continue
            of_run = in_disorder if shuffled else data
            model, history = trained(of_run, seed, **settings)
            run = settings | {"seed": seed, "accuracy": evaluate(model, of_run), "history": history}
            if not shuffled:
                run["accuracy_mixed_up"] = evaluate(model, mixed_up)
            results = kept(path) | {name: run}  # another process may have added its own
            write_result(path, results, machine, data="fashion_mnist", n_train=N_TRAIN, model=MODEL, recipe=RECIPE)
            print(name, run["accuracy"], run.get("accuracy_mixed_up"), flush=True)


if __name__ == "__main__":
    main([int(seed) for seed in sys.argv[1:]] or [0, 1, 2])
