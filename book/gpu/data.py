"""The data sets of the GPU chapters: images and labels in memory, and what a model reads of them."""

import contextlib
import dataclasses
import gzip
import hashlib
import io
import itertools
import math
import os
import pickle
import re
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

# Where Debian's package dataset-fashion-mnist puts its files
FASHION_MNIST = os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist")
# A folder or tar with CIFAR-10: the originals, or images as train/<class>/*.jpg and test/<class>/*.jpg
CIFAR10 = os.environ.get("CIFAR10")
DOWNLOADS = os.environ.get("COURSE_DATA", "~/.cache/patches-and-positions")
CACHE = Path(__file__).parents[2] / "_build" / "data"


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


def prepare(images, data, image_size=None):
    """Pixels as the model reads them: resized, of mean 0 and spread 1."""
    images = (images.float() - data.mean) / data.std
    if image_size and images.shape[-2:] != (image_size, image_size):
        size = (image_size, image_size)
        images = F.interpolate(images, size, mode="bilinear", antialias=True)
    return images
