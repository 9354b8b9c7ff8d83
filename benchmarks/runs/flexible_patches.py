"""The full-size runs behind the page *One model, many patch sizes*.

Trains models at one patch size and models that change it at every step, and tests each
at patch sizes that it has and has not seen. What is done stands in the result file, run
by run, and is not done again; a run that was cut off goes on from its checkpoint.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path
from unittest import mock

import torch
import torch.nn.functional as F

from book.gpu.data import load_data
from book.gpu.training import Recipe, evaluate, pick_machine, train, write_result
from solutions import small_vit
from solutions.small_vit import SmallViT, resize_filters

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "book" / "gpu" / "results" / "flexible_patches.json"
CHECKPOINTS = ROOT / "_build" / "runs" / "flexible_patches"
MODEL = {"d": 64, "depth": 3, "n_heads": 4, "d_ff": 128, "positions": "learned"}
# 24 has more divisors than 28. So short a run needs no augmentation: it sees no image twice
RECIPE = Recipe(epochs=1, batch_size=64, image_size=24, shift=0, flip=False)
TRAINED, TESTED, OWN = (12, 6, 4), (12, 8, 6, 4, 3), 6


def bilinear(weight, P):
    """Filters resized as if they were pictures: (d, C, p, p) -> (d, C, P, P)."""
    return F.interpolate(weight, (P, P), mode="bilinear")


def bilinear_by_area(weight, P):
    """The same, times the ratio of the areas, so that a flat patch keeps its token."""
    return bilinear(weight, P) * (weight.shape[-1] / P) ** 2


RULES = {"pi": resize_filters, "bilinear": bilinear, "by area": bilinear_by_area}


def run(settings, data, machine):
    """Train one model and test it; returns the entry of the result file."""
    sizes, rule, epochs, seed = (settings[key] for key in ("patch_sizes", "rule", "epochs", "seed"))
    recipe = dataclasses.replace(RECIPE, epochs=epochs, seed=seed, patch_sizes=sizes if len(sizes) > 1 else ())
    torch.manual_seed(seed)
    model_sizes = data.sizes | {"image_size": (RECIPE.image_size, RECIPE.image_size)}
    model = SmallViT(**model_sizes, **MODEL, patch_size=OWN if len(sizes) > 1 else sizes[0])
    name = "-".join(map(str, [*sizes, rule.replace(" ", "_"), epochs, seed]))
    began = time.process_time()
    with mock.patch.object(small_vit, "resize_filters", RULES[rule]):
        history = train(model, data, recipe, machine, checkpoint=CHECKPOINTS / f"{name}.pt", progress=False)
    trained = time.process_time() - began
    accuracy = {}
    for test_rule in RULES if len(sizes) == 1 else [rule]:
        with mock.patch.object(small_vit, "resize_filters", RULES[test_rule]):
            tested = TESTED if test_rule == rule else TRAINED
            accuracy[test_rule] = {P: evaluate(model, data, machine, RECIPE.image_size, P) for P in tested}
    keep = ("epoch", "loss", "accuracy")
    history = [{key: round(entry[key], 5) for key in keep} for entry in history]
    return settings | {"accuracy": accuracy, "history": history, "processor_seconds": round(trained)}


def plan(seeds, long):
    """What is to be run, one seed after the other."""
    for seed in range(seeds):
        common = {"epochs": RECIPE.epochs, "seed": seed}
        for rule in ("pi", "bilinear"):
            yield common | {"patch_sizes": TRAINED, "rule": rule}
        for P in TRAINED:
            yield common | {"patch_sizes": (P,), "rule": "pi"}
    if long:  # as many steps as the three models of one size together
        yield {"epochs": RECIPE.epochs * len(TRAINED), "seed": 0, "patch_sizes": TRAINED, "rule": "pi"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--long", action="store_true", help="one flexible model with the steps of three")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data, machine = load_data("fashion_mnist"), pick_machine()
    results = json.loads(RESULTS.read_text())["results"] if RESULTS.exists() else []
    for settings in plan(options.seeds, options.long):
        settings = json.loads(json.dumps(settings))  # as the file has it
        if any(all(entry[key] == value for key, value in settings.items()) for entry in results):
            continue
        results.append(json.loads(json.dumps(run(settings, data, machine))))
        write_result(RESULTS, results, machine, data="fashion_mnist", model=MODEL, recipe=RECIPE, tested=TESTED)
        print(json.dumps(results[-1]), flush=True)


if __name__ == "__main__":
    main()
