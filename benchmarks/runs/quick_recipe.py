"""Choose the quick recipe: the shortest way to 85 % on Fashion-MNIST, on images held out of the training set.

    OMP_NUM_THREADS=1 python benchmarks/runs/quick_recipe.py

takes half an hour of one core. Every run stands in book/gpu/results/quick_recipe.json and is not run again.

1. Every recipe of `TRIED` once, on the first 50,000 training images; its accuracy is that on the last 10,000.
2. Those that reach `WANTED` there, fastest first, with two seeds more, until one reaches it with all three.
3. That one on all 60,000 training images, with the same seeds. Only these runs see the test images.

`WANTED` was 85.5 % at first. What that chose, patches of 14, named 85.1, 85.7 and 85.2 % of the test images right:
enough, but with less room than one seed differs from another. So it was raised, and the second round of recipes added.
"""

import dataclasses
import json
import time
from pathlib import Path

import torch

from book.gpu.data import load_data
from book.gpu.training import QUICK, Machine, Recipe, train, write_result
from solutions.small_vit import SmallViT

RESULT = Path(__file__).resolve().parents[2] / "book" / "gpu" / "results" / "quick_recipe.json"
HELD_OUT, SEEDS = 10_000, (0, 1, 2)
WANTED = 0.86  # a point above the goal: other images may be harder, and other machines round otherwise
CPU = Machine("cpu", "float32", False, "CPU, 1 thread")

MODEL = {"patch_size": 7, "d": 64, "depth": 3, "n_heads": 4, "d_ff": 128, "positions": "learned"}
TABLE_STD = 0.5
RECIPE = Recipe(epochs=1, batch_size=128, learning_rate=5e-3, label_smoothing=0.0, shift=0, flip=False)

# What each recipe changes of the three above
TRIED = [
    {},
    {"learning_rate": 3e-3},
    {"learning_rate": 8e-3},
    {"batch_size": 64, "learning_rate": 3e-3},
    {"batch_size": 64},
    {"batch_size": 256, "learning_rate": 8e-3},
    {"table_std": 0.2},
    {"table_std": 1.0},
    {"positions": "factorized"},
    {"positions": "axial"},
    {"pooling": "mean_then_norm"},
    {"warmup": 0.05},
    {"warmup": 0.2},
    {"weight_decay": 0.0},
    {"weight_decay": 0.2},
    {"label_smoothing": 0.1},
    {"clip": 0.5},
    {"depth": 2},
    {"depth": 2, "learning_rate": 8e-3},
    {"depth": 2, "batch_size": 64},
    {"depth": 2, "d_ff": 256},
    {"depth": 2, "d": 96, "d_ff": 192},
    {"depth": 2, "d": 96, "d_ff": 192, "batch_size": 64},
    {"depth": 1, "d": 96, "d_ff": 384},
    {"depth": 4},
    {"d": 48, "d_ff": 96},
    {"patch_size": 9},
    {"patch_size": 14, "d": 96, "d_ff": 192},
    {"patch_size": 14, "d": 96, "d_ff": 192, "batch_size": 64},
    {"patch_size": 14, "d": 96, "d_ff": 192, "epochs": 2},
    {"patch_size": 14, "d": 128, "d_ff": 256, "batch_size": 64},
    {"patch_size": 4, "depth": 2, "d": 48, "d_ff": 96},
    # A second round, of what had helped in the first
    {"table_std": 2.0},
    {"table_std": 1.0, "learning_rate": 3e-3},
    {"table_std": 1.0, "label_smoothing": 0.1},
    {"table_std": 1.0, "weight_decay": 0.2},
    {"table_std": 1.0, "positions": "factorized"},
    {"table_std": 1.0, "positions": "factorized", "depth": 2},
    {"table_std": 1.0, "depth": 2},
    {"table_std": 1.0, "depth": 2, "label_smoothing": 0.1, "learning_rate": 3e-3},
    {"table_std": 1.0, "depth": 2, "pooling": "mean_then_norm"},
    {"depth": 2, "pooling": "mean_then_norm"},
    {"table_std": 1.0, "pooling": "mean_then_norm"},
    {"table_std": 1.0, "patch_size": 14, "d": 96, "d_ff": 192},
]


def with_changes(changes):
    """The whole settings of a recipe, with the keys of `QUICK`."""
    of_recipe = {field.name for field in dataclasses.fields(Recipe)}
    recipe = dataclasses.replace(RECIPE, **{key: value for key, value in changes.items() if key in of_recipe})
    table_std = changes.get("table_std", TABLE_STD)
    model = {key: value for key, value in changes.items() if key not in of_recipe and key != "table_std"}
    return {"model": MODEL | model, "table_std": table_std, "recipe": recipe}


def run(data, settings, seed):
    """The accuracy of one run on `data.test_images`, and the processor seconds that it took."""
    start = time.process_time()
    torch.manual_seed(seed)
    model = SmallViT(**data.sizes, **settings["model"])
    model.reset_parameters(settings["table_std"])
    history = train(model, data, dataclasses.replace(settings["recipe"], seed=seed), CPU, progress=False)
    seconds = time.process_time() - start
    return {"seed": seed, "accuracy": history[-1]["accuracy"], "seconds": round(seconds, 1)}


def fastest_first(runs, wanted=WANTED):
    """The recipes whose first run reached what is wanted."""
    first = [run for run in runs if run["seed"] == SEEDS[0] and run["accuracy"] >= wanted]
    return [run["changes"] for run in sorted(first, key=lambda run: run["seconds"])]


def reached(runs, changes, wanted=WANTED):
    """Whether a recipe reached it with every seed."""
    return all(run["accuracy"] >= wanted for run in runs if run["changes"] == changes)


def main():
    torch.set_num_threads(1)  # so that processor seconds are seconds
    kept = json.loads(RESULT.read_text())["results"] if RESULT.exists() else {"held_out": [], "all": []}
    whole = load_data("fashion_mnist")
    data = whole.hold_out(HELD_OUT)

    def note(part, data, changes, seed):
        if any((run["changes"], run["seed"]) == (changes, seed) for run in kept[part]):
            return
        kept[part].append({"changes": changes} | run(data, with_changes(changes), seed))
        write_result(RESULT, kept, CPU, data="fashion_mnist", held_out=HELD_OUT, wanted=WANTED, tried=len(TRIED),
                     model=MODEL, table_std=TABLE_STD, recipe=RECIPE)  # fmt: skip
        print(part, kept[part][-1], flush=True)

    for changes in TRIED:
        note("held_out", data, changes, SEEDS[0])
    for changes in fastest_first(kept["held_out"]):
        for seed in SEEDS[1:]:
            note("held_out", data, changes, seed)
        if reached(kept["held_out"], changes):
            break
    else:
        raise SystemExit(f"no recipe reached {WANTED:.1%} with all seeds")
    for seed in SEEDS:
        note("all", whole, changes, seed)
    chosen = with_changes(changes)
    print("chosen:", chosen, "as in book/gpu/training.py" if chosen == QUICK else "QUICK is another")


if __name__ == "__main__":
    main()
