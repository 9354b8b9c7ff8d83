"""Choose a recipe for CIFAR-10, train a small ViT in colour by it, and timm's ViT of the same size by a plain one.

    make peers          # once: the environment that has timm
    export CIFAR10=cifar10-jpeg.tar.gz PYTHONPATH=. OMP_WAIT_POLICY=passive
    _build/peers/bin/python benchmarks/runs/colour.py

takes seven hours of two quiet cores; the first line that it prints is its budget. Each unit is written into
book/gpu/results/colour.json when it ends, and a run that was cut off goes on where it stopped (`_build/runs`). Seconds
are those of the processors, divided by the threads, so the run may be stopped for a while. On a busy machine a thread
that waits for another must not keep a core busy meanwhile, as it does without the variable: a quarter of the rate was
left.

1. The search. Each of `STAGES` tries changes of the recipe so far, all for the same time, on the first 40,000 training
   images, and takes the one with the highest accuracy on the last 10,000, if that is higher than without. Then the
   learning rate of timm's ViT, in the same way.
2. The chosen recipe on all 50,000 training images, for `HOURS`; its weights are kept in book/gpu/results/colour.npz.
3. timm's ViT of the same size for as long, by `PLAIN`. Only 2 and 3 see the test images, and nothing is chosen by them.
"""

import dataclasses
import functools
import json
import sys
from pathlib import Path

import torch
from torch import nn

from benchmarks.runs.position_ablation import first
from benchmarks.training import timm_model
from book.gpu.data import load_data
from book.gpu.training import RESULTS, Machine, Recipe, describe_run, evaluate, keep_weights, train, write_result
from solutions.small_vit import SmallViT

RESULT, WEIGHTS = RESULTS / "colour.json", RESULTS / "colour.npz"
RUNS = Path(__file__).resolve().parents[2] / "_build" / "runs"
DATA = "CIFAR-10, re-encoded as JPEG"
HELD_OUT, SEED, HOURS = 10_000, 0, 2.0
N_TEST = 2_000  # of each epoch; an accuracy at the end is that of all

MODEL = {"patch_size": 4, "d": 128, "depth": 4, "n_heads": 4, "d_ff": 512, "positions": "learned"}
MODEL |= {"pooling": "cls", "registers": 0}
SHAPE = ("patch_size", "d", "depth", "n_heads", "d_ff")
TABLE_STD = 0.5
RECIPE = Recipe(batch_size=256, learning_rate=2e-3, warmup=0.1, weight_decay=0.05, label_smoothing=0.1, shift=4)

# Minutes, and what each recipe changes of the best one so far. Augmentation pays late, so its runs are longer
STAGES = [
    (2, [{"learning_rate": 1e-3}, {"learning_rate": 4e-3}]),
    (2, [{"muon": True, "learning_rate": rate} for rate in (1e-3, 2e-3, 4e-3, 8e-3)]),
    (2, [{"depth": 6, "d_ff": 256}, {"d": 96, "depth": 7, "d_ff": 384}, {"d": 160, "depth": 3, "d_ff": 480}]),
    (2, [{"table_std": 0.02}, {"table_std": 1.0}, {"positions": "axial"}, {"positions": "factorized"}]),
    (2, [{"pooling": "mean_then_norm"}, {"registers": 4}]),
    (2, [{"batch_size": 128}, {"weight_decay": 0.2}, {"warmup": 0.25}, {"label_smoothing": 0.0}]),
    (
        20,
        [
            {"warp": 0.2, "colour": 0.4},
            {"warp": 0.2, "colour": 0.4, "erase": 8},
            {"warp": 0.2, "colour": 0.4, "cutmix": 0.5},
            {"cutmix": 0.5},
            {"warp": 0.2},
        ],
    ),
]

# timm's ViT as it comes, AdamW, half a cosine, and the augmentation that is usual for CIFAR-10
PLAIN = Recipe(batch_size=256, learning_rate=1e-3, warmup=0.05, weight_decay=0.05, label_smoothing=0.1, shift=4)
PLAIN_STAGE = (4, [{"learning_rate": rate} for rate in (5e-4, 2e-3, 4e-3)])  # for as many images


class Peer(nn.Module):
    """timm's ViT, called as a SmallViT is.

    Parameters
    ----------
    sizes : dict
        Of `timm_model`.

    Notes
    -----
    Without fused attention: in bfloat16 on a CPU its way back took half of each step.
    """

    def __init__(self, sizes):
        super().__init__()
        self.settings = {"library": "timm"} | sizes
        self.model = timm_model(**sizes)
        for block in self.model.blocks:
            block.attn.fused_attn = False

    def forward(self, images, patch_size=None):
        return self.model(images)


def parts_of(changes, recipe):
    """What changes make of the model, its table's start and a recipe."""
    of_recipe = {field.name for field in dataclasses.fields(Recipe)}
    model = {key: value for key, value in changes.items() if key not in of_recipe and key != "table_std"}
    recipe = dataclasses.replace(recipe, **{key: value for key, value in changes.items() if key in of_recipe})
    return MODEL | model, changes.get("table_std", TABLE_STD), recipe


def model_of(data, changes):
    """The model of a recipe, with fresh weights."""
    settings, table_std, _ = parts_of(changes, RECIPE)
    torch.manual_seed(SEED)
    model = SmallViT(**data.sizes, **settings)
    model.reset_parameters(table_std)
    return model


def peer_of(data, changes):
    """timm's model of the same size as that of a recipe."""
    settings, _, _ = parts_of(changes, PLAIN)
    sizes = {key: settings[key] for key in SHAPE}
    torch.manual_seed(SEED)
    return Peer({"image_size": data.sizes["image_size"][0], "channels": 3, "classes": 10} | sizes)


LIBRARIES = {"ours": (model_of, RECIPE), "timm": (peer_of, PLAIN)}


def search(stages, start, note):
    """Take the best of each stage and go on from there.

    Parameters
    ----------
    stages : list of (float, list of dict)
        Minutes, and the changes that are tried, each in addition to those that were taken before.
    start : dict
        Changes to begin with.
    note : function
        Of changes and minutes: the accuracy on the held-out images.

    Returns
    -------
    dict
        All changes that were taken.
    """
    best = start
    for minutes, tried in stages:
        best = max([best, *(best | changes for changes in tried)], key=lambda changes: note(changes, minutes))
    return best


def minutes_of(stages):
    """How long a search takes; the best of a stage is not run again in the next one of as many minutes."""
    before, total = None, 0
    for minutes, tried in stages:
        total += minutes * (len(tried) + (minutes != before))
        before = minutes
    return total


def rate_of(model, data, recipe, machine):
    """Images per second in training, measured over twenty steps."""
    n = 20 * recipe.batch_size
    few = dataclasses.replace(data, train_images=data.train_images[:n], train_labels=data.train_labels[:n])
    recipe = dataclasses.replace(recipe, epochs=1)
    return train(model, first(few, 256), recipe, machine, progress=False)[-1]["images_per_second"]


class Runs:
    """All that has been run so far, in one file, and the next run.

    Parameters
    ----------
    data : Data
        All images.
    machine : Machine
    commit : str
        Of the code that runs; each run keeps its own.
    """

    def __init__(self, data, machine, commit):
        self.whole, self.machine, self.commit = data, machine, commit
        self.held_out = data.hold_out(HELD_OUT)
        self.kept = json.loads(RESULT.read_text())["results"] if RESULT.exists() else {}
        for name in ("rates", "search"):
            self.kept.setdefault(name, [])

    def write(self):
        tried = {library: sum(run["library"] == library for run in self.kept["search"]) for library in ("ours", "timm")}
        write_result(
            RESULT, self.kept, self.machine, command="OMP_WAIT_POLICY=passive benchmarks/runs/colour.py", data=DATA,
            held_out=HELD_OUT, recipes_tried=tried, hours=HOURS, model=MODEL, table_std=TABLE_STD, recipe=RECIPE,
            plain=PLAIN,
        )  # fmt: skip

    def rate(self, library, changes):
        """Images per second of a model, measured once."""
        make, recipe = LIBRARIES[library]
        settings, _, recipe = parts_of(changes, recipe)
        of_rate = {"library": library, "model": settings, "batch_size": recipe.batch_size}
        for known in self.kept["rates"]:
            if {key: known[key] for key in of_rate} == of_rate:
                return known["images_per_second"]
        rate = rate_of(make(self.whole, changes), self.whole, recipe, self.machine)
        self.kept["rates"].append(of_rate | {"images_per_second": rate})
        self.write()
        return rate

    def budget(self):
        """Hours of each part, and the images that they are at the rates of this machine."""
        hours = {"search": minutes_of(STAGES) / 60, "search, timm": minutes_of([PLAIN_STAGE]) / 60}
        hours |= {"ours": HOURS, "timm": HOURS}
        rates = {library: self.rate(library, {}) for library in LIBRARIES}
        images = {part: round(n * 3600 * rates["timm" if "timm" in part else "ours"]) for part, n in hours.items()}
        self.kept["budget"] = {"images_per_second": rates, "hours": hours, "images": images}
        self.write()
        print("budget", self.kept["budget"], f"{sum(hours.values()):.1f} hours", flush=True)

    def recipe(self, library, changes, data, seconds):
        """The recipe for a run of so many seconds."""
        epochs = max(1, round(seconds * self.rate(library, changes) / len(data.train_images)))
        _, _, recipe = parts_of(changes, LIBRARIES[library][1])
        return dataclasses.replace(recipe, epochs=epochs, seed=SEED)

    def trial(self, library, changes, minutes):
        """The accuracy on the held-out images of a run of so many minutes."""
        of_run = {"library": library, "changes": changes, "minutes": minutes}
        for run in self.kept["search"]:
            if {key: run[key] for key in of_run} == of_run:
                return run["accuracy"]
        recipe, checkpoint = self.recipe(library, changes, self.held_out, 60 * minutes), RUNS / "colour-trial.pt"
        make, _ = LIBRARIES[library]
        model, seen = make(self.held_out, changes), first(self.held_out, N_TEST)
        history = train(model, seen, recipe, self.machine, checkpoint=checkpoint, progress=False)
        run = of_run | {"accuracy": evaluate(model, self.held_out, self.machine), "epochs": recipe.epochs}
        run |= {"parameters": sum(x.numel() for x in model.parameters())}
        run |= {key: history[-1][key] for key in ("loss", "seconds", "images_per_second")} | {"commit": self.commit}
        self.kept["search"].append(run)
        self.write()
        checkpoint.unlink()
        print(len(self.kept["search"]), run, flush=True)
        return run["accuracy"]

    def choose(self):
        """Search for both recipes; timm's model takes the shape of the best of ours."""
        ours = search(STAGES, {}, functools.partial(self.trial, "ours"))
        shape = {key: ours[key] for key in SHAPE if key in ours}
        self.kept["chosen"] = {
            "ours": ours,
            "timm": search([PLAIN_STAGE], shape, functools.partial(self.trial, "timm")),
        }
        self.write()

    def train(self, library):
        """Train one of the two by its chosen recipe on all training images."""
        models, changes = self.kept.setdefault("models", {}), self.kept["chosen"][library]
        if library in models:
            return
        recipe, (make, _) = self.recipe(library, changes, self.whole, 3600 * HOURS), LIBRARIES[library]
        model = make(self.whole, changes)
        print(library, recipe, flush=True)
        history = train(
            model, first(self.whole, N_TEST), recipe, self.machine, checkpoint=RUNS / f"colour-{library}.pt",
            progress=False, after_epoch=lambda history: print(history[-1], flush=True),
        )  # fmt: skip
        model.half().float()  # as it is kept
        accuracy = evaluate(model, self.whole, dataclasses.replace(self.machine, precision="float32"))
        run = {"accuracy": accuracy, "parameters": sum(x.numel() for x in model.parameters())}
        run |= {"recipe": dataclasses.asdict(recipe), "commit": self.commit}
        if library == "ours":
            colours = {"mean": self.whole.mean.flatten().tolist(), "std": self.whole.std.flatten().tolist()}
            keep_weights(WEIGHTS, model, data=DATA, classes=self.whole.classes, **colours, **run)
        models[library] = run | {"history": history}
        self.write()
        print(library, f"{accuracy:.2%} of the test images, {history[-1]['seconds'] / 3600:.2f} hours", flush=True)


def main():
    threads = torch.get_num_threads()
    machine = Machine("cpu", "bfloat16", False, f"CPU, {threads} thread{'s' * (threads > 1)}")
    commit = describe_run(machine)["commit"]
    if commit is None or commit.endswith("-dirty"):
        sys.exit(f"the commit is {commit}: a result is kept of a clean one, so commit what has changed")
    runs = Runs(load_data("cifar10"), machine, commit)
    runs.budget()
    runs.choose()
    for library in LIBRARIES:
        runs.train(library)


if __name__ == "__main__":
    main()
