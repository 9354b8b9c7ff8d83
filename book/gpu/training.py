"""Recipe, loop, machine and kept results of the GPU chapters.

Every random choice of a run follows from the seed and the number of the epoch or
step. So a run needs no random state to go on from a checkpoint, and on the CPU it
ends with the same bits as one that was never cut off.
"""

import contextlib
import dataclasses
import datetime
import itertools
import json
import math
import os
import platform
import re
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from book.gpu.augmentation import augment, cutmix, erase, generator_for, recolour, warp
from book.gpu.data import prepare
from solutions.small_vit import SmallViT, decay_groups

RESULTS = Path(__file__).parent / "results"


# ---------------------------------------------------------------------- recipe


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Parameters
    ----------
    epochs, batch_size : int
        Images that do not fill a batch are left out, others in each epoch.
    learning_rate : float
        The largest; it rises over the share `warmup` of all steps and falls along
        half a cosine to 0.
    weight_decay : float
        Of AdamW, for matrices and filters (`decay_groups`).
    label_smoothing : float
        Share of the label spread over all classes.
    clip : float
        Largest norm of the gradient.
    shift : int
        Images are moved by up to so many pixels in both directions.
    flip : bool
        Every other image, by chance, is mirrored.
    warp : float
        Images are turned by up to so many radians, and stretched and slanted by up to
        this share.
    colour : float
        Brightness, contrast and saturation change by up to this share.
    erase : int
        A square of this side, somewhere in each image, is set to the mean.
    cutmix : float
        In so large a share of the steps a rectangle of each image comes from another
        one, and the loss asks for both labels by their areas.
    image_size : int, optional
        Images are resized to this side.
    patch_sizes : tuple of int
        Each step cuts its images into patches of one of these (FlexiViT).
    muon : bool
        The matrices of the blocks are trained by Muon in place of AdamW, with updates of
        the same size.
    seed : int
        All random choices of the run follow from it.
    """

    epochs: int = 10
    batch_size: int = 256
    learning_rate: float = 2e-3
    warmup: float = 0.1
    weight_decay: float = 0.05
    label_smoothing: float = 0.1
    clip: float = 1.0
    shift: int = 2
    flip: bool = True
    warp: float = 0.0
    colour: float = 0.0
    erase: int = 0
    cutmix: float = 0.0
    image_size: int | None = None
    patch_sizes: tuple = ()
    muon: bool = False
    seed: int = 0

    def learning_rate_at(self, step, steps):
        """The learning rate of step 0, 1, …, steps - 1."""
        rise = max(1, round(self.warmup * steps))
        if step < rise:
            return self.learning_rate * (step + 1) / rise
        fallen = (step - rise) / max(1, steps - rise)
        return self.learning_rate * (1 + math.cos(math.pi * fallen)) / 2


RECIPES = {  # digits are not mirrored: that of a 2 is none
    "digits": Recipe(epochs=40, batch_size=64, learning_rate=4e-3, shift=1, flip=False),
    "fashion_mnist": Recipe(),
    "cifar10": Recipe(epochs=60, shift=4),
}


# The shortest way we know to 85 % on Fashion-MNIST, some ten seconds of one core. Chosen among 44 recipes on images
# held out of the training set: benchmarks/runs/quick_recipe.py. Large patches and a few blocks, a table that starts as
# large as the tokens, and no augmentation, which pays in longer runs.
QUICK = {
    "model": {"patch_size": 7, "d": 64, "depth": 3, "n_heads": 4, "d_ff": 128, "positions": "learned"},
    "table_std": 1.0,
    "recipe": Recipe(epochs=1, batch_size=128, learning_rate=5e-3, label_smoothing=0.1, shift=0, flip=False),
}


# --------------------------------------------------------------------- machine


@dataclass(frozen=True)
class Machine:
    """Where to train, in which precision, and whether to compile."""

    device: str
    precision: str  # "float32", "bfloat16" or "float16"
    compile: bool
    name: str

    def autocast(self):
        """A context in which matrix products run in the machine's precision."""
        dtype = getattr(torch, self.precision)
        return torch.autocast(self.device, dtype, enabled=dtype != torch.float32)


def pick_machine():
    """The GPU, if there is one, with the precision that it is fast in; else the CPU.

    On a GPU the model is compiled, which pays after some hundred steps. bfloat16
    needs a GPU of 2020 or later; older ones get float16, whose gradients are scaled.
    """
    if not torch.cuda.is_available():
        threads = torch.get_num_threads()
        return Machine("cpu", "float32", False, f"CPU, {threads} thread{'s' * (threads > 1)}")
    precise = torch.cuda.is_bf16_supported(including_emulation=False)
    compiles = torch.cuda.get_device_capability() >= (7, 0)
    precision = "bfloat16" if precise else "float16"
    return Machine("cuda", precision, compiles, torch.cuda.get_device_name())


SIZES = ("full", "reduced", "tiny")


def settings_for(machine, full, reduced, tiny):
    """The settings of a page's own run: those of the size that is asked for.

    The variable `COURSE_SIZE` of the environment names the size: "full" (a free GPU takes
    some minutes for a page, two cores of a CPU up to a quarter of an hour), "reduced" (seconds)
    or "tiny" (the tests'). Without it a GPU runs "full" and anything else "reduced".

    Parameters
    ----------
    machine : Machine
    full, reduced, tiny : dict
        With the same keys. What a smaller run has other than the full one is printed, but for
        `least`: the bounds that a page asserts.

    Returns
    -------
    dict
        With `size`, the name of the size, beside the settings.

    Raises
    ------
    ValueError
        If there is no size of that name.
    """
    asked = os.environ.get("COURSE_SIZE", "")
    size = asked or ("full" if machine.device == "cuda" else "reduced")
    if size not in SIZES:
        raise ValueError(f"COURSE_SIZE must be one of {', '.join(SIZES)}, not {size!r}")
    chosen = {"full": full, "reduced": reduced, "tiny": tiny}[size]
    keys = [key for key in full if key != "least" and chosen[key] != full[key]]
    if keys:
        why = f"The {size} size was asked for" if asked else f"No GPU here ({machine.name})"
        print(f"{why}, so this run is smaller:", *(f"{key} {chosen[key]} instead of {full[key]}" for key in keys),
              "COURSE_SIZE=full in the environment asks for all of it", sep="\n  ")  # fmt: skip
    return chosen | {"size": size}


def checkpoint_for(setting, name):
    """Where a page's own run leaves its checkpoint: a long one in `checkpoints/`, a short one nowhere.

    Parameters
    ----------
    setting : dict
        Of `settings_for`.
    name : str

    Returns
    -------
    Path or None
    """
    folder = Path(os.environ.get("COURSE_CHECKPOINTS", "checkpoints"))
    return folder / f"{name}.pt" if setting["size"] == "full" else None


def kept_runs(page, size, seed=None):
    """What a page's own run has found before, with other seeds (`benchmarks/runs/notebooks.py`).

    Parameters
    ----------
    page : str
        Such as "small_vit".
    size : str
        Of the runs, one of SIZES.
    seed : int, optional
        The seed that is being run now: left out.

    Returns
    -------
    list of dict
        What each run measured, by name, in the order of the seeds.
    """
    path = RESULTS / "notebooks" / f"{page}.json"
    runs = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    runs = [run for run in runs if (run["size"], run["precision"], run["without"]) == (size, "float32", False)]
    return [run["measured"] for run in sorted(runs, key=lambda run: run["seed"]) if run["seed"] != seed]


# ------------------------------------------------------------------------ loop


def train(
    model,
    data,
    recipe,
    machine=None,
    *,
    checkpoint=None,
    every=60.0,
    progress=True,
    after_epoch=None,
):
    """Train a model, or go on where a checkpoint left off.

    Parameters
    ----------
    model : SmallViT
        It is trained in place.
    data : Data
    recipe : Recipe
    machine : Machine, optional
        The best of this computer by default.
    checkpoint : path, optional
        Written every so often and at the end of each epoch; read first, if it is
        there.
    every : float
        Seconds between two checkpoints within an epoch.
    progress : bool
        Show a bar.
    after_epoch : function, optional
        Called with the history after each epoch, to draw curves.

    Returns
    -------
    list of dict
        The history, one entry for each epoch: `epoch`, `loss` (mean over the epoch),
        `accuracy` (on the test images), `learning_rate`, `seconds` (training alone, from the
        start; on a CPU those of its processors, divided by the threads, so that what else
        the machine does counts little), `images_per_second`.

    Raises
    ------
    ValueError
        If the checkpoint is of another model or recipe, or a batch does not fit.
    MemoryError
        If the machine's memory does not suffice; it says what to lower.
    """
    machine = machine or pick_machine()
    n, B = len(data.train_images), recipe.batch_size
    if not 1 <= B <= n:
        raise ValueError(f"batch_size must be from 1 to {n}, the number of images, not {B}")
    with _naming_what_to_lower(machine, "n_train of load_data, or the model's d or depth"):
        data, model = data.to(machine.device), model.to(machine.device)
        optimizers = _optimizers(model, recipe)
        scaler = torch.amp.GradScaler(machine.device, enabled=machine.precision == "float16")
        state = {"step": 0, "loss": 0.0, "seconds": 0.0, "history": []}
        if checkpoint is not None and Path(checkpoint).exists():
            state = _read(checkpoint, model, optimizers, scaler, recipe)
    forward = torch.compile(model) if machine.compile else model
    start, history, per_epoch = state["step"], state["history"], n // B
    steps = recipe.epochs * per_epoch
    loss_sum = torch.tensor(state["loss"], dtype=torch.float64, device=machine.device)
    began, saved = _seconds(machine) - state["seconds"], time.perf_counter()
    bar = _bar(steps, start, progress)
    try:
        for step in range(start, steps):
            epoch, place = divmod(step, per_epoch)
            if place == 0 or step == start:
                order = torch.randperm(n, generator=generator_for(recipe.seed, 0, epoch))
            rate = recipe.learning_rate_at(step, steps)
            for group in itertools.chain.from_iterable(optimizer.param_groups for optimizer in optimizers):
                group["lr"] = rate
            with _naming_what_to_lower(machine, batch_size=B):
                batch = order[place * B : (place + 1) * B].to(machine.device)
                loss_sum += _step(forward, data, batch, recipe, machine, optimizers, scaler, step)
            bar.update()
            if place == per_epoch - 1:
                loss = loss_sum.item() / per_epoch
                seconds = _seconds(machine) - began
                # Without gradients twice as many images fit at the least
                with _naming_what_to_lower(machine, batch_size=B):
                    accuracy = _accuracy(model, data, machine, recipe.image_size, None, batch_size=2 * B)
                began = _seconds(machine) - seconds  # the test does not count
                history.append(
                    {
                        "epoch": epoch + 1,
                        "loss": loss,
                        "accuracy": accuracy,
                        "learning_rate": rate,
                        "seconds": round(seconds, 3),
                        "images_per_second": round((step + 1) * B / seconds, 1),
                    }
                )
                loss_sum.zero_()
                bar.set_postfix(loss=f"{loss:.3f}", accuracy=f"{accuracy:.3f}")
                if after_epoch:
                    after_epoch(history)
            now = time.perf_counter()
            if checkpoint is not None and (place == per_epoch - 1 or now - saved >= every):
                state = {"step": step + 1, "loss": loss_sum.item(), "history": history}
                state["seconds"] = _seconds(machine) - began
                _write(checkpoint, model, optimizers, scaler, recipe, state)
                saved = time.perf_counter()
    finally:
        bar.close()
    return history


def _step(forward, data, batch, recipe, machine, optimizers, scaler, step):
    """One step; returns the loss without waiting for it."""
    generator = generator_for(recipe.seed, 1, step)
    images = augment(data.train_images[batch], recipe.shift, recipe.flip, generator)
    images, options = prepare(images, data, recipe.image_size), {}
    if recipe.patch_sizes:
        chosen = torch.randint(len(recipe.patch_sizes), (), generator=generator)
        options = {"patch_size": recipe.patch_sizes[chosen]}
    if recipe.warp:
        images = warp(images, recipe.warp, generator)
    if recipe.colour:
        images = recolour(images, recipe.colour, generator)
    if recipe.erase:
        images = erase(images, recipe.erase, generator)
    labels, smoothing, share = data.train_labels[batch], recipe.label_smoothing, 0.0
    if recipe.cutmix and torch.rand((), generator=generator) < recipe.cutmix:
        images, others, share = cutmix(images, generator)
    with machine.autocast():
        logits = forward(images, **options)
    loss = F.cross_entropy(logits.float(), labels, label_smoothing=smoothing)
    if share:
        of_others = F.cross_entropy(logits.float(), labels[others], label_smoothing=smoothing)
        loss = (1 - share) * loss + share * of_others
    for optimizer in optimizers:
        optimizer.zero_grad()
    scaler.scale(loss).backward()
    for optimizer in optimizers:
        scaler.unscale_(optimizer)
    groups = itertools.chain.from_iterable(optimizer.param_groups for optimizer in optimizers)
    torch.nn.utils.clip_grad_norm_([p for group in groups for p in group["params"]], recipe.clip)
    for optimizer in optimizers:
        scaler.step(optimizer)  # left out where a scaled gradient was too large for float16
    scaler.update()
    return loss.detach().double()


def _optimizers(model, recipe):
    """AdamW, and Muon for the matrices of the blocks, if the recipe has it."""
    decaying, others = decay_groups(model, recipe.weight_decay)
    matrices = [x for x in model.blocks.parameters() if x.ndim == 2] if recipe.muon else []
    left = {id(x) for x in decaying["params"]} - {id(x) for x in matrices}
    decaying["params"] = [x for x in decaying["params"] if id(x) in left]
    optimizers = [torch.optim.AdamW([decaying, others], betas=(0.9, 0.98), fused=True)]
    if matrices:
        options = {"weight_decay": recipe.weight_decay, "adjust_lr_fn": "match_rms_adamw"}
        optimizers.append(torch.optim.Muon(matrices, **options))
    return optimizers


def _seconds(machine):
    """Seconds so far, from some start: on a CPU those of its processors, divided by the threads."""
    return time.process_time() / torch.get_num_threads() if machine.device == "cpu" else time.perf_counter()


@contextlib.contextmanager
def _naming_what_to_lower(machine, what="", batch_size=None):
    """Turn the many ways to run out of memory into one error that says what to do."""
    try:
        yield
    except RuntimeError as error:
        texts = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")
        if not isinstance(error, torch.OutOfMemoryError) and not any(text in str(error) for text in texts):
            raise
        # A notebook keeps the error, and with it all that the functions held which it came through: activations
        traceback.clear_frames(error.__traceback__)
        where = f"out of memory on {machine.name}"
        if batch_size is None:
            raise MemoryError(f"{where} before the first step: lower {what}.") from error
        lower = "lower the model's d or depth, or raise its patch_size."
        if batch_size > 1:
            lower = f"lower batch_size (try {batch_size // 2}). If that does not help, {lower}"
        raise MemoryError(f"{where} with batch_size={batch_size}: {lower}") from error


def evaluate(model, data, machine=None, image_size=None, patch_size=None, batch_size=1000):
    """Share of the test images that a model names right.

    Parameters
    ----------
    model : SmallViT
    data : Data
    machine : Machine, optional
    image_size : int, optional
        Resize the images to this side.
    patch_size : int, optional
        Cut them into other patches than the model's own.
    batch_size : int
        So many at once.

    Returns
    -------
    float

    Raises
    ------
    MemoryError
        If the machine's memory does not suffice; it says what to lower.
    """
    machine = machine or pick_machine()
    with _naming_what_to_lower(machine, batch_size=batch_size):
        model, data = model.to(machine.device), data.to(machine.device)
        return _accuracy(model, data, machine, image_size, patch_size, batch_size)


@torch.no_grad()
def _accuracy(model, data, machine, image_size, patch_size, batch_size):
    right = torch.zeros((), dtype=torch.int64, device=machine.device)
    batches = zip(data.test_images.split(batch_size), data.test_labels.split(batch_size), strict=True)
    for images, labels in batches:
        with machine.autocast():
            logits = model(prepare(images, data, image_size), patch_size)
        right += (logits.argmax(dim=1) == labels).sum()
    return right.item() / len(data.test_labels)


def _bar(steps, done, progress):
    from tqdm import tqdm

    # On stdout: nbgrader and the book read stderr as a failure
    return tqdm(total=steps, initial=done, unit="step", file=sys.stdout, disable=not progress)


# ------------------------------------------------------- checkpoints, results


def _signature(model, recipe):
    settings = {f"model.{key}": value for key, value in model.settings.items()}
    settings |= {f"recipe.{key}": value for key, value in dataclasses.asdict(recipe).items()}
    return json.loads(json.dumps(settings))


def _write(path, model, optimizers, scaler, recipe, state):
    """Write a checkpoint in whole: who is cut off here still has the one before."""
    content = state | {
        "model": model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in optimizers],
        "scaler": scaler.state_dict(),
        "settings": _signature(model, recipe),
    }
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    torch.save(content, part)
    os.replace(part, path)


def _read(path, model, optimizers, scaler, recipe):
    content = torch.load(path, map_location="cpu", weights_only=True)
    ours, theirs = _signature(model, recipe), content["settings"]
    different = [key for key in ours if ours[key] != theirs.get(key)]
    if different:
        words = ", ".join(f"{key} {theirs.get(key)} and not {ours[key]}" for key in different)
        raise ValueError(f"{path} is of another run, with {words}: remove it or name another file")
    model.load_state_dict(content["model"])
    for optimizer, state in zip(optimizers, content["optimizers"], strict=True):
        optimizer.load_state_dict(state)
    if content["scaler"]:  # empty, if it was written where nothing is scaled
        scaler.load_state_dict(content["scaler"])
    return {key: content[key] for key in ("step", "loss", "seconds", "history")}


def describe_run(machine):
    """The machine, the date and the commit of a run, to be kept with its numbers.

    A commit is "-dirty" where code differs from it; results that were written since are none.
    """
    git = ["git", "-C", str(Path(__file__).parents[2])]
    changed = ["status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude)book/gpu/results"]
    try:
        commit, changes = (
            subprocess.run([*git, *arguments], capture_output=True, text=True, check=True).stdout.strip()
            for arguments in (["rev-parse", "--short", "HEAD"], changed)
        )
        commit += "-dirty" if changes else ""
    except (OSError, subprocess.CalledProcessError):
        commit = None
    return {
        "machine": dataclasses.asdict(machine) | {"processor": platform.machine(), "torch": torch.__version__},
        "date": datetime.date.today().isoformat(),
        "commit": commit,
    }


def write_result(path, results, machine, **settings):
    """Write what a run found, with all that is needed to judge it and to repeat it.

    Parameters
    ----------
    path : path
        A JSON file.
    results : object
        Lists, dictionaries and numbers.
    machine : Machine
    **settings
        Of the model, the recipe and the data; a `Recipe` is written as its fields.
    """
    plain = {
        key: dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value for key, value in settings.items()
    }
    content = {"settings": plain} | describe_run(machine) | {"results": results}
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1)
    text = re.sub(r"\[[^][{}\"]*\]", lambda numbers: " ".join(numbers[0].split()), text)  # in one line
    path.write_text(text + "\n", encoding="utf-8")


def keep_weights(path, model, **about):
    """Write a model's weights in half precision, with what it is made with and known of it.

    Parameters
    ----------
    path : path
        An .npz, which NumPy reads without PyTorch.
    model : SmallViT
    **about
        Whatever JSON can hold, beside `model`, its settings.
    """
    weights = {name: x.detach().half().numpy() for name, x in model.state_dict().items()}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, about=json.dumps({"model": model.settings} | about), **weights)


def load_colour_model(path=RESULTS / "colour.npz"):
    """The model in colour: a SmallViT trained on CIFAR-10, re-encoded as JPEG.

    Parameters
    ----------
    path : path, optional
        What `keep_weights` has written.

    Returns
    -------
    model : SmallViT
        Ready to classify images of 32 by 32 pixels.
    about : dict
        `classes`, `mean` and `std` of its pixels, `accuracy` on the test images,
        and how it was trained.
    """
    with np.load(path) as content:
        about = json.loads(str(content["about"]))
        weights = {name: torch.from_numpy(content[name]).float() for name in content.files if name != "about"}
    model = SmallViT(**about["model"])
    model.load_state_dict(weights)
    return model.eval(), about
