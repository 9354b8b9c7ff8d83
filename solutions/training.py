"""Data, recipe and loop of the GPU chapters.

Every random choice of a run follows from the seed and the number of the epoch or
step. So a run needs no random state to go on from a checkpoint, and on the CPU it
ends with the same bits as one that was never cut off.
"""

import contextlib
import dataclasses
import datetime
import gzip
import hashlib
import io
import itertools
import json
import math
import os
import pickle
import platform
import re
import subprocess
import sys
import tarfile
import time
import traceback
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from solutions.small_vit import SmallViT, decay_groups

# Where Debian's package dataset-fashion-mnist puts its files
FASHION_MNIST = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
# A folder or tar with CIFAR-10: the originals, or images as train/<class>/*.jpg and test/<class>/*.jpg
CIFAR10 = os.environ.get("CIFAR10")
DOWNLOADS = os.environ.get("COURSE_DATA", "~/.cache/patches-and-positions")
RESULTS = Path(__file__).parents[1] / "book" / "gpu" / "results"
CACHE = Path(__file__).parents[1] / "_build" / "data"


# ------------------------------------------------------------------------ data


@dataclass(frozen=True)
class Data:
    """Images and labels in memory.

    Attributes
    ----------
    train_images, test_images : tensor of uint8, shape (N, C, H, W)
    train_labels, test_labels : tensor of int64, shape (N,)
    classes : tuple of str
        What the labels stand for.
    mean, std : tensor, shape (C, 1, 1)
        Of the training images' pixels, channel by channel.
    """

    train_images: torch.Tensor
    train_labels: torch.Tensor
    test_images: torch.Tensor
    test_labels: torch.Tensor
    classes: tuple
    mean: torch.Tensor
    std: torch.Tensor

    @property
    def sizes(self):
        """What a model has to know of the data, for `SmallViT(**data.sizes)`."""
        _, channels, H, W = self.train_images.shape
        classes = len(self.classes)
        return {"image_size": (H, W), "channels": channels, "classes": classes}

    def to(self, device):
        """The same data on a device."""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        moved = {name: x.to(device) for name, x in fields.items() if name != "classes"}
        return dataclasses.replace(self, **moved)

    def hold_out(self, n):
        """The same data with the last n training images, held out of training, in place of the test images.

        Choose a recipe on these: its accuracy on the test images stays one that nobody has chosen.

        Parameters
        ----------
        n : int

        Returns
        -------
        Data

        Raises
        ------
        ValueError
            If nothing would be held out, or nothing be left to train on.
        """
        left = len(self.train_images) - n
        if n < 1 or left < 1:
            raise ValueError(f"n must be from 1 to {len(self.train_images) - 1}, so that images are left, not {n}")
        images, labels = self.train_images, self.train_labels
        parts = images[:left], labels[:left], images[left:], labels[left:]
        return Data(*parts, self.classes, *_mean_and_std(images[:left]))


def _mean_and_std(images):
    """Of the pixels of each channel, (C, 1, 1) each; counted, since as float64 they would be eight times as large."""
    values = torch.arange(256, dtype=torch.float64)
    counts = torch.stack([channel.flatten().bincount(minlength=256) for channel in images.transpose(0, 1)]).double()
    n = counts.sum(dim=1, keepdim=True)  # (C, 1)
    mean = (counts * values).sum(dim=1, keepdim=True) / n
    variance = (counts * (values - mean) ** 2).sum(dim=1, keepdim=True) / (n - 1)
    return mean.float()[:, :, None], variance.sqrt().float()[:, :, None]


def load_data(name, n_train=None):
    """Load one of the course's collections of real images.

    Parameters
    ----------
    name : {"digits", "fashion_mnist", "cifar10"}
        1,797 digits of 8 by 8 pixels from scikit-learn; 70,000 pieces of clothing of
        28 by 28, from Debian's dataset-fashion-mnist or else by torchvision; 60,000
        colour photographs of 32 by 32 from what the variable `CIFAR10` of the
        environment names (see `read_cifar10`), or else by torchvision.
    n_train : int, optional
        Keep only the first so many training images.

    Returns
    -------
    Data

    Raises
    ------
    ValueError
        If there is no collection of that name, n_train is not positive, or the files are
        damaged or not all there.
    FileNotFoundError
        If the files are not here and torchvision is not either.
    """
    loaders = {"digits": _digits, "fashion_mnist": _fashion_mnist, "cifar10": _cifar10}
    if name not in loaders:
        raise ValueError(f"name must be one of {', '.join(loaders)}, not {name!r}")
    if n_train is not None and n_train < 1:
        raise ValueError(f"n_train must be positive, not {n_train}")
    train_images, train_labels, test_images, test_labels, classes = loaders[name]()
    train_images, train_labels = train_images[:n_train], train_labels[:n_train]
    parts = train_images, train_labels, test_images, test_labels
    return Data(*parts, tuple(classes), *_mean_and_std(train_images))


def _digits():
    from sklearn.datasets import load_digits

    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    images = torch.from_numpy(found.images[order]).to(torch.uint8)[:, None]  # (N, 1, 8, 8)
    labels = torch.from_numpy(found.target[order]).long()
    n = 1437  # four fifths
    return images[:n], labels[:n], images[n:], labels[n:], map(str, range(10))


def _fashion_mnist():
    classes = ("T-shirt", "trouser", "pullover", "dress", "coat")
    classes += ("sandal", "shirt", "sneaker", "bag", "ankle boot")
    folder, parts = Path(FASHION_MNIST), []
    if folder.is_dir():
        for part in ("train", "t10k"):
            images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")[:, None]
            labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")
            parts += [torch.from_numpy(images), torch.from_numpy(labels).long()]
    else:
        for train in (True, False):
            found = _torchvision("FashionMNIST", train)
            parts += [found.data[:, None], found.targets.long()]
    return *parts, classes


def _cifar10():
    if CIFAR10:
        return *_kept_cifar10(Path(CIFAR10).expanduser()), CIFAR10_CLASSES
    parts = []
    for train in (True, False):
        found = _torchvision("CIFAR10", train)
        images = torch.from_numpy(found.data).permute(0, 3, 1, 2)  # (N, C, H, W)
        parts += [images.contiguous(), torch.tensor(found.targets)]
    return *parts, found.classes


CIFAR10_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR10_COUNTS = {"train": 5000, "test": 1000}  # images of each class
CIFAR10_FORMS = "a folder or tar with cifar-10-batches-py or with images as train/<class>/*.jpg and test/<class>/*.jpg"
CIFAR10_BATCHES = {"train": [f"data_batch_{number}" for number in range(1, 6)], "test": ["test_batch"]}


def _kept_cifar10(source):
    """What `read_cifar10` reads, kept: 60,000 images are decoded once."""
    if not source.exists():
        raise FileNotFoundError(f"the variable CIFAR10 names {source}, which is not here: it should be {CIFAR10_FORMS}")
    source = source.resolve()
    files = sorted(source.rglob("*")) if source.is_dir() else [source]
    stamps = [
        (str(path), stat.st_size, stat.st_mtime_ns) for path, stat in zip(files, map(os.lstat, files), strict=True)
    ]
    kept = CACHE / f"cifar10-{hashlib.sha256(repr(stamps).encode()).hexdigest()[:16]}.npz"
    names = [f"{part}_{what}" for part in CIFAR10_COUNTS for what in ("images", "labels")]
    if kept.exists():
        with np.load(kept) as content:
            return [torch.from_numpy(content[name]) for name in names]
    parts = read_cifar10(source)
    with contextlib.suppress(OSError):  # where nothing can be written it is decoded each time
        CACHE.mkdir(parents=True, exist_ok=True)
        part = kept.with_name(f"{kept.stem}.{os.getpid()}.part.npz")
        np.savez(part, **dict(zip(names, parts, strict=True)))
        os.replace(part, kept)
    return [torch.from_numpy(part) for part in parts]


def read_cifar10(source):
    """Read CIFAR-10 from its original files or from images.

    Parameters
    ----------
    source : path
        A folder or a tar, compressed or not. The originals are the batches of
        `cifar-10-python.tar.gz`; images lie in `train/<class>/` and `test/<class>/` as
        JPEG or PNG. Other files are passed over.

    Returns
    -------
    train_images, train_labels, test_images, test_labels : array
        Images (N, 3, 32, 32) of uint8, labels (N,) of int64. Originals keep their
        order; images are mixed, always in the same way, so that the first or the
        last of them are of all classes.

    Raises
    ------
    ValueError
        If a file is damaged, or there are not all images of every class.
    """
    source = Path(source)
    batches, pictures = {}, {part: {} for part in CIFAR10_COUNTS}
    try:
        for name, content in _files_of_cifar10(source):
            if Path(name).suffix:
                part, kind = Path(name).parts[-3:-1]
                pictures[part].setdefault(kind, {})[name] = _picture(f"{name} in {source}", content)
            else:
                batches[Path(name).name] = _batch(f"{name} in {source}", content)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        words = str(error).partition(":")[0]  # tarfile tells of each way that it tried
        raise ValueError(f"{source} is damaged or no tar ({words}): it should be {CIFAR10_FORMS}") from error
    if not batches and not any(pictures.values()):
        raise ValueError(f"{source} holds nothing of CIFAR-10: it should be {CIFAR10_FORMS}")
    parts = []
    for part in CIFAR10_COUNTS:
        if batches:
            missing = [name for name in CIFAR10_BATCHES[part] if name not in batches]
            if missing:
                raise ValueError(
                    f"{source} is not whole: {', '.join(missing)} should be beside {', '.join(sorted(batches))}"
                )
            images, labels = (np.concatenate(x) for x in zip(*map(batches.get, CIFAR10_BATCHES[part]), strict=True))
        else:
            images, labels = _mixed(pictures[part], f"{part} in {source}")
        for name, n in zip(CIFAR10_CLASSES, np.bincount(labels, minlength=10), strict=True):
            if n != CIFAR10_COUNTS[part]:
                raise ValueError(f"{source} is not whole: {part} has {n} images of {name}, not {CIFAR10_COUNTS[part]}")
        parts += [images, labels]
    return parts


def _files_of_cifar10(source):
    """Names and contents of the files in a folder or tar that are batches or images of CIFAR-10."""
    batches = "|".join(itertools.chain(*CIFAR10_BATCHES.values()))
    image = rf"(?:{'|'.join(CIFAR10_COUNTS)})/[^/]+/[^/.][^/]*\.(?i:jpe?g|png)"
    wanted = re.compile(rf"(?:.*/)?(?:{batches}|{image})")
    if source.is_dir():
        for path in source.rglob("*"):
            name = path.relative_to(source).as_posix()
            if wanted.fullmatch(name) and path.is_file():
                yield name, path.read_bytes()
        return
    with tarfile.open(source) as tar:
        for member in tar:
            if wanted.fullmatch(member.name) and member.isfile():
                yield member.name, tar.extractfile(member).read()


def _picture(name, content):
    """An image as an array, (3, 32, 32)."""
    try:
        from PIL import Image
    except ImportError:
        raise FileNotFoundError("images are read by Pillow, which is not here: install pillow") from None
    try:
        with Image.open(io.BytesIO(content)) as image:
            size, pixels = image.size, image.convert("RGB") if image.size == (32, 32) else None
    except Exception as error:  # each format has its own
        raise ValueError(f"{name} is damaged ({error}): it should be a JPEG or PNG of 32 by 32 pixels") from error
    if pixels is None:
        raise ValueError(f"{name} is of {size[0]} by {size[1]} pixels, not 32 by 32")
    return np.asarray(pixels).transpose(2, 0, 1)


def _mixed(pictures, where):
    """Images and labels of all classes, in an order that is always the same."""
    strange = sorted(pictures.keys() - set(CIFAR10_CLASSES))
    if strange:
        raise ValueError(f"{where}: {', '.join(strange)} is none of the classes {', '.join(CIFAR10_CLASSES)}")
    found = [
        (image, CIFAR10_CLASSES.index(kind)) for kind in sorted(pictures) for _, image in sorted(pictures[kind].items())
    ]
    order = np.random.default_rng(0).permutation(len(found))
    images = np.zeros((len(found), 3, 32, 32), np.uint8)
    for row, place in enumerate(order):
        images[row] = found[place][0]
    return images, np.array([found[place][1] for place in order], np.int64)


class _Batch(pickle.Unpickler):
    """Reads arrays, lists and numbers alone: a pickle may name any function, and reading it would call that."""

    def find_class(self, module, name):
        names = {"_reconstruct": np.empty(0).__reduce__()[0], "ndarray": np.ndarray, "dtype": np.dtype}
        if module.split(".")[0] != "numpy" or name not in names:
            raise pickle.UnpicklingError(f"it names {module}.{name}")
        return names[name]


def _batch(name, content):
    """Images (N, 3, 32, 32) and labels of one of the original files."""
    try:
        batch = _Batch(io.BytesIO(content), encoding="bytes").load()
        images, labels = batch[b"data"], np.array(batch[b"labels"], np.int64)
        if images.dtype != np.uint8 or images.shape != (len(labels), 3072) or not np.isin(labels, range(10)).all():
            raise ValueError(f"images {images.shape} of {images.dtype}, labels {labels.shape}")
    except Exception as error:  # bytes that are no pickle can raise nearly anything
        raise ValueError(f"{name} is damaged ({error}): it should be a batch of CIFAR-10 for Python") from error
    return images.reshape(-1, 3, 32, 32), labels


def _torchvision(name, train):
    try:
        from torchvision import datasets
    except ImportError:
        raise FileNotFoundError(
            f"{name} is not here. Install torchvision, which downloads it"
            + (f", or put its IDX files in {FASHION_MNIST}" if name == "FashionMNIST" else "")
            + (f", or let the variable CIFAR10 name {CIFAR10_FORMS}" if name == "CIFAR10" else "")
        ) from None
    return getattr(datasets, name)(os.path.expanduser(DOWNLOADS), train=train, download=True)


def read_idx(path):
    """Read a file in the format of MNIST, compressed or not.

    Parameters
    ----------
    path : path
        Two zero bytes, the type (8: bytes), the number of axes, each axis as four
        bytes, largest first, then the numbers.

    Returns
    -------
    array of uint8

    Raises
    ------
    ValueError
        If it is no such file, or not whole.
    """
    path = Path(path)
    data = path.read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if data[:3] != b"\0\0\x08":
        raise ValueError(f"{path.name} is no IDX file of bytes")
    axes = data[3]
    shape = tuple(int(n) for n in np.frombuffer(data, ">u4", axes, 4))
    if len(data) != 4 + 4 * axes + math.prod(shape):
        raise ValueError(f"{path.name} is not whole: it should hold {shape}")
    return np.frombuffer(data, np.uint8, offset=4 + 4 * axes).reshape(shape).copy()


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


def generator_for(*numbers):
    """A random generator that depends on these numbers alone."""
    state = np.random.SeedSequence([len(numbers), *numbers]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def augment(images, shift, flip, generator):
    """Move and mirror every image of a batch by a chance of its own.

    Parameters
    ----------
    images : tensor, shape (B, C, H, W)
    shift : int
        Up to so many pixels in both directions; what comes in is 0.
    flip : bool
        Mirror every other one from left to right.
    generator : torch.Generator
        On the CPU, so that all devices draw the same.

    Returns
    -------
    tensor, shape (B, C, H, W)
    """
    B, _, H, W = images.shape
    down, right = torch.randint(2 * shift + 1, (2, B, 1), generator=generator)
    mirrored = torch.rand(B, 1, generator=generator) < (0.5 if flip else 0)
    if not shift and not flip:
        return images  # after the draws, so that what is drawn next stays the same
    rows = down + torch.arange(H)  # (B, H) into the padded image
    cols = right + torch.where(mirrored, torch.arange(W - 1, -1, -1), torch.arange(W))
    rows, cols = rows.to(images.device), cols.to(images.device)
    batch = torch.arange(B, device=images.device)[:, None, None]
    padded = F.pad(images, (shift, shift, shift, shift))
    moved = padded[batch, :, rows[:, :, None], cols[:, None, :]]  # (B, H, W, C)
    return moved.permute(0, 3, 1, 2)


def warp(images, strength, generator):
    """Turn, stretch and slant every image of a batch by a chance of its own.

    Parameters
    ----------
    images : tensor of float, shape (B, C, H, W)
        Of mean 0: what comes in from outside is 0.
    strength : float
        Up to so many radians, and up to this share of the side.
    generator : torch.Generator

    Returns
    -------
    tensor, shape (B, C, H, W)
    """
    angle, wide, high, slant = strength * (2 * torch.rand(4, len(images), generator=generator) - 1)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    # Where each pixel is taken from: turned, after it was stretched and slanted
    across = torch.stack([cos * (1 + wide), cos * slant - sin * (1 + high), zero], dim=1)
    down = torch.stack([sin * (1 + wide), sin * slant + cos * (1 + high), zero], dim=1)
    taken = torch.stack([across, down], dim=1).to(images.device)  # (B, 2, 3)
    places = F.affine_grid(taken, images.shape, align_corners=False)
    return F.grid_sample(images, places, align_corners=False)


def recolour(images, strength, generator):
    """Change brightness, contrast and saturation of every image of a batch by a chance of its own.

    Parameters
    ----------
    images : tensor of float, shape (B, C, H, W)
        Of mean 0 and spread 1.
    strength : float
        Up to this share; of a spread, for brightness.
    generator : torch.Generator

    Returns
    -------
    tensor, shape (B, C, H, W)
    """
    changes = strength * (2 * torch.rand(3, len(images), 1, 1, 1, generator=generator) - 1)
    brighter, contrast, saturation = changes.to(images.device)
    grey, mean = images.mean(dim=1, keepdim=True), images.mean(dim=(1, 2, 3), keepdim=True)
    images = grey + (1 + saturation) * (images - grey)
    return mean + (1 + contrast) * (images - mean) + brighter


def erase(images, side, generator):
    """Set a square, somewhere in each image of a batch, to 0: the mean.

    Parameters
    ----------
    images : tensor of float, shape (B, C, H, W)
    side : int
    generator : torch.Generator

    Returns
    -------
    tensor, shape (B, C, H, W)
    """
    B, _, H, W = images.shape
    top, left = (torch.randint(1 - side, n, (B, 1), generator=generator) for n in (H, W))
    rows, cols = ((torch.arange(n) >= at) & (torch.arange(n) < at + side) for n, at in ((H, top), (W, left)))
    square = rows[:, None, :, None] & cols[:, None, None, :]  # (B, 1, H, W)
    return images.masked_fill(square.to(images.device), 0)


def cutmix(images, generator):
    """Paste a rectangle of one image into another, the same rectangle for a whole batch.

    Parameters
    ----------
    images : tensor, shape (B, C, H, W)
    generator : torch.Generator

    Returns
    -------
    images : tensor, shape (B, C, H, W)
    others : tensor of int64, shape (B,)
        The images that the rectangles come from.
    share : float
        Of the rectangle's area in the whole.
    """
    B, _, H, W = images.shape
    others = torch.randperm(B, generator=generator).to(images.device)
    side = torch.rand((), generator=generator).sqrt().item()  # so that all areas are as frequent
    top, left = (torch.randint(n, (), generator=generator).item() for n in (H, W))  # the rectangle's middle
    rows, cols = (
        slice(max(0, round(at - side * n / 2)), min(n, round(at + side * n / 2))) for n, at in ((H, top), (W, left))
    )
    mixed = images.clone()
    mixed[:, :, rows, cols] = images[others][:, :, rows, cols]
    return mixed, others, (rows.stop - rows.start) * (cols.stop - cols.start) / (H * W)


def prepare(images, data, image_size=None):
    """Pixels as the model reads them: resized, of mean 0 and spread 1."""
    images = (images.float() - data.mean) / data.std
    if image_size and images.shape[-2:] != (image_size, image_size):
        size = (image_size, image_size)
        images = F.interpolate(images, size, mode="bilinear", antialias=True)
    return images


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
    git = ["git", "-C", str(Path(__file__).parents[1])]
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
