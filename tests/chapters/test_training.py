"""Training: the data, the recipe's parts, and runs that end the same whether they were cut off or not."""

import dataclasses
import functools
import gzip
import json
import os
import pickle
import shutil
import subprocess
import sys
import tarfile
import time
import weakref
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from book.gpu import augmentation, training
from book.gpu import data as sets
from book.gpu.augmentation import augment, generator_for
from book.gpu.data import load_data, prepare, read_idx
from book.gpu.training import (
    RECIPES,
    Machine,
    Recipe,
    checkpoint_for,
    describe_run,
    evaluate,
    kept_runs,
    pick_machine,
    settings_for,
    train,
    write_result,
)
from solutions.small_vit import SmallViT

CPU = Machine("cpu", "float32", False, "CPU")
SHORT = Recipe(epochs=2, batch_size=32, shift=1, flip=False)


@pytest.fixture(scope="module")
def digits():
    return load_data("digits", n_train=160)


def small(data, seed=0, **options):
    torch.manual_seed(seed)
    sizes = data.sizes | {"patch_size": 2, "d": 16, "depth": 2, "n_heads": 2, "d_ff": 32}
    return SmallViT(**sizes | options)


def run(model, data, recipe=SHORT, machine=CPU, **options):
    return train(model, data, recipe, machine, progress=False, **options)


def same_weights(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


# ------------------------------------------------------------------------------------------------ data


def test_digits_are_what_scikit_learn_has(digits):
    from sklearn.datasets import load_digits

    assert digits.sizes == {"image_size": (8, 8), "channels": 1, "classes": 10}
    data = load_data("digits")
    images = torch.cat([data.train_images, data.test_images]).flatten(1).double()
    labels = torch.cat([data.train_labels, data.test_labels])
    assert (len(data.train_labels), len(data.test_labels)) == (1437, 360)
    found = {(tuple(image), int(label)) for image, label in zip(images.tolist(), labels, strict=True)}
    theirs = load_digits()
    assert found == {(tuple(image), int(label)) for image, label in zip(theirs.data, theirs.target, strict=True)}
    ready = prepare(data.train_images, data)
    torch.testing.assert_close(ready.mean(), torch.tensor(0.0), atol=1e-5, rtol=0)
    torch.testing.assert_close(ready.std(), torch.tensor(1.0), atol=1e-5, rtol=0)


def test_fashion_mnist_where_it_is_installed():
    if not Path(sets.FASHION_MNIST).is_dir():
        pytest.skip("needs Debian's dataset-fashion-mnist")
    data = load_data("fashion_mnist")
    assert data.train_images.shape == (60000, 1, 28, 28)
    assert data.train_labels.bincount().tolist() == [6000] * 10
    assert data.test_labels.bincount().tolist() == [1000] * 10
    assert [data.classes[label] for label in data.train_labels[:3]] == ["ankle boot", "T-shirt", "T-shirt"]
    assert abs(data.mean.item() / 255 - 0.2860) < 1e-4  # as it is known
    assert abs(data.std.item() / 255 - 0.3530) < 1e-4


def idx(array):
    head = b"\0\0\x08" + bytes([array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return head + array.tobytes()


def test_idx_files(tmp_path):
    array = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    plain, packed = tmp_path / "a-idx3-ubyte", tmp_path / "a-idx3-ubyte.gz"
    plain.write_bytes(idx(array))
    packed.write_bytes(gzip.compress(idx(array)))
    assert np.array_equal(read_idx(plain), array)
    assert np.array_equal(read_idx(packed), array)
    for wrong, words in ((idx(array)[:-1], "not whole"), (idx(array) + b"0", "not whole"), (b"PNG..", "no IDX")):
        plain.write_bytes(wrong)
        with pytest.raises(ValueError, match=words):
            read_idx(plain)


def test_data_that_is_not_there(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="digits, fashion_mnist, cifar10, not 'imagenet'"):
        load_data("imagenet")
    with pytest.raises(ValueError, match=r"n_train.*0"):
        load_data("digits", n_train=0)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.setattr(sets, "FASHION_MNIST", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"torchvision.*IDX files in .*nowhere"):
        load_data("fashion_mnist")
    monkeypatch.setattr(sets, "CIFAR10", None)
    with pytest.raises(FileNotFoundError, match=r"CIFAR10 is not here.*torchvision.*variable CIFAR10.*train/<class>"):
        load_data("cifar10")
    monkeypatch.setattr(sets, "CIFAR10", str(tmp_path / "gone.tar"))
    with pytest.raises(FileNotFoundError, match=r"CIFAR10 names .*gone\.tar.*should be a folder or tar"):
        load_data("cifar10")


# In the order of batches.meta, which is that of the labels 0 to 9
KINDS = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def tone(part, kind, number):
    """The one colour of a made picture, another one for each."""
    return (10 * KINDS.index(kind) + 5, 100 * (part == "test") + 50, 60 * number + 20)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Two training images and one test image of every class, as pictures and as the original batches."""
    from PIL import Image

    monkeypatch.setattr(sets, "CIFAR10_COUNTS", {"train": 2, "test": 1})
    monkeypatch.setattr(sets, "CACHE", tmp_path / "cache")
    pictures, originals = tmp_path / "pictures", tmp_path / "originals" / "cifar-10-batches-py"
    originals.mkdir(parents=True)
    rows = []
    for part, n in (("train", 2), ("test", 1)):
        for kind in KINDS:
            (pictures / part / kind).mkdir(parents=True)
            for number in range(n):
                image = Image.new("RGB", (32, 32), tone(part, kind, number))
                image.save(pictures / part / kind / f"{number}.{'png' if number else 'jpg'}", quality=100)
                if part == "train":
                    rows.append((np.repeat(np.array(tone(part, kind, number), np.uint8), 1024), KINDS.index(kind)))
    (pictures / "train" / "cat" / "._0.jpg").write_bytes(b"what a Mac writes beside a file in a tar")
    tests = [(np.repeat(np.array(tone("test", kind, 0), np.uint8), 1024), KINDS.index(kind)) for kind in KINDS]
    batches = {f"data_batch_{number}": rows[4 * number - 4 : 4 * number] for number in range(1, 6)}
    for name, batch in (batches | {"test_batch": tests}).items():
        images, labels = zip(*batch, strict=True)
        content = pickle.dumps({b"data": np.stack(images), b"labels": list(labels)}, protocol=3)
        # The originals name the module as NumPy did before 2.0
        (originals / name).write_bytes(content.replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))
    (originals / "batches.meta").write_bytes(b"not read")
    return SimpleNamespace(pictures=pictures, originals=originals)


def as_tar(folder, mode="w:gz"):
    path = folder.parent / f"{folder.name}.tar"
    with tarfile.open(path, mode) as tar:
        tar.add(folder, folder.name)
    return path


def load_from(monkeypatch, source):
    monkeypatch.setattr(sets, "CIFAR10", str(source))
    return load_data("cifar10")


@pytest.mark.parametrize("form", ["pictures", "originals"])
@pytest.mark.parametrize("packed", [None, "w", "w:gz"])
def test_cifar10_in_all_its_forms(made, monkeypatch, form, packed):
    folder = getattr(made, form)
    data = load_from(monkeypatch, as_tar(folder, packed) if packed else folder)
    assert list(data.classes) == KINDS and data.sizes == {"image_size": (32, 32), "channels": 3, "classes": 10}
    for part, n in (("train", 2), ("test", 1)):
        images, labels = getattr(data, f"{part}_images"), getattr(data, f"{part}_labels")
        assert (images.dtype, images.shape) == (torch.uint8, (10 * n, 3, 32, 32))
        expected = {tone(part, kind, number) for kind in KINDS for number in range(n)}
        seen = {min(expected, key=lambda one, x=x: sum(abs(a - b) for a, b in zip(one, x, strict=True)))
                for x in images.double().mean(dim=(2, 3)).tolist()}  # fmt: skip
        assert seen == expected
        off = images.double() - images.double().mean(dim=(2, 3), keepdim=True)
        assert off.abs().max() < 2  # one colour each
        for image, label in zip(images.double().mean(dim=(2, 3)), labels, strict=True):
            assert abs(image[0].item() - (10 * label.item() + 5)) < 3
    if form == "originals":  # they are mixed as they come; these are not
        assert data.train_labels.tolist() == [label for label in range(10) for _ in range(2)]
    else:
        assert len(data.train_labels[:10].unique()) > 5
    again = load_from(monkeypatch, folder)
    assert torch.equal(again.train_images, data.train_images) and torch.equal(again.test_labels, data.test_labels)


def test_pictures_are_decoded_once_and_again_when_one_has_changed(made, monkeypatch):
    expected, decoded, picture = load_from(monkeypatch, made.pictures), [], sets._picture
    monkeypatch.setattr(sets, "_picture", lambda name, content: decoded.append(name) or picture(name, content))
    kept = load_from(monkeypatch, made.pictures)
    assert decoded == []
    for field in ("train_images", "train_labels", "test_images", "test_labels"):
        assert torch.equal(getattr(kept, field), getattr(expected, field))
    changed = made.pictures / "test" / "ship" / "0.jpg"
    changed.write_bytes((made.pictures / "test" / "frog" / "0.jpg").read_bytes())
    os.utime(changed, ns=(1, 1))
    other = load_from(monkeypatch, made.pictures)
    assert len(decoded) == 30 and not torch.equal(other.test_images, expected.test_images)
    os.utime(changed, ns=(2, 2))  # written again, with as many bytes
    load_from(monkeypatch, made.pictures)
    assert len(decoded) == 60


def test_cifar10_where_nothing_can_be_kept(made, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("a file where a folder should be")
    monkeypatch.setattr(sets, "CACHE", tmp_path / "file" / "cache")
    assert len(load_from(monkeypatch, made.pictures).test_labels) == 10


class Harmful:
    def __reduce__(self):
        return exec, ("raise SystemExit('what a batch names was called')",)


def spoil(made, how):
    """Damage the made data in some way; returns what to read and the words that the error should have."""
    pictures, batch = made.pictures, made.originals / "data_batch_3"
    cat = pictures / "train" / "cat" / "0.jpg"
    if how == "no picture":
        cat.write_bytes(b"no picture")
        return pictures, r"train/cat/0\.jpg in .*damaged.*JPEG or PNG of 32 by 32"
    if how == "half a picture":
        cat.write_bytes(cat.read_bytes()[:-40])
        return pictures, r"train/cat/0\.jpg in .*damaged"
    if how == "another size":
        from PIL import Image

        Image.new("RGB", (32, 24)).save(cat)
        return pictures, r"train/cat/0\.jpg in .* is of 32 by 24 pixels, not 32 by 32"
    if how == "a picture is missing":
        cat.unlink()
        return pictures, "pictures is not whole: train has 1 images of cat, not 2"
    if how == "a class is missing":
        shutil.rmtree(pictures / "test" / "dog")
        return as_tar(pictures), "not whole: test has 0 images of dog, not 1"
    if how == "a class too many":
        (pictures / "train" / "dog").rename(pictures / "train" / "dogs")
        return pictures, "train in .*: dogs is none of the classes airplane, automobile"
    if how == "half a tar":
        path = as_tar(pictures)
        path.write_bytes(path.read_bytes()[:-2000])
        return path, r"pictures\.tar is damaged or no tar"
    if how == "no tar":
        return cat, "0.jpg is damaged or no tar .*should be a folder or tar"
    if how == "nothing of it":
        shutil.rmtree(pictures)
        (pictures / "train").mkdir(parents=True)
        return pictures, "holds nothing of CIFAR-10: it should be a folder or tar"
    if how == "a batch is missing":
        batch.unlink()
        return made.originals, "not whole: data_batch_3 should be beside data_batch_1"
    if how == "half a batch":
        batch.write_bytes(batch.read_bytes()[:-30])
        return made.originals, "data_batch_3 in .*damaged"
    if how == "no labels":
        batch.write_bytes(pickle.dumps({b"data": np.zeros((4, 3072), np.uint8)}, protocol=3))
        return made.originals, "data_batch_3 in .*damaged .*labels"
    if how == "a label too large":
        batch.write_bytes(pickle.dumps({b"data": np.zeros((1, 3072), np.uint8), b"labels": [10]}, protocol=3))
        return made.originals, "data_batch_3 in .*damaged"
    if how == "a harmful batch":
        batch.write_bytes(pickle.dumps({b"data": Harmful(), b"labels": []}, protocol=3))
        return as_tar(made.originals), r"data_batch_3 in .*damaged \(it names builtins\.exec\)"
    raise AssertionError(how)


SPOILT = ["no picture", "half a picture", "another size", "a picture is missing", "a class is missing"]
SPOILT += ["a class too many", "half a tar", "no tar", "nothing of it", "a batch is missing", "half a batch"]
SPOILT += ["no labels", "a label too large", "a harmful batch"]


@pytest.mark.parametrize("how", SPOILT)
def test_damaged_or_incomplete_cifar10_is_named_and_not_kept(made, monkeypatch, tmp_path, how):
    source, words = spoil(made, how)
    for _ in range(2):
        with pytest.raises(ValueError, match=words):
            load_from(monkeypatch, source)
    assert not (tmp_path / "cache").exists()


@pytest.mark.slow
def test_cifar10_itself():
    if not sets.CIFAR10:
        pytest.skip("needs CIFAR-10, named by the variable CIFAR10")
    data = load_data("cifar10")
    assert data.train_labels.bincount().tolist() == [5000] * 10
    assert data.test_labels.bincount().tolist() == [1000] * 10
    # As they are published; JPEG smooths, so its spreads are smaller
    torch.testing.assert_close(data.mean.flatten() / 255, torch.tensor([0.4914, 0.4822, 0.4465]), atol=3e-4, rtol=0)
    torch.testing.assert_close(data.std.flatten() / 255, torch.tensor([0.2470, 0.2435, 0.2616]), atol=3e-3, rtol=0)


# ------------------------------------------------------------------------------------------ augmentation


def test_augmented_images_are_moved_and_mirrored_ones():
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(1, 255, size=(200, 3, 5, 6), dtype=np.uint8))
    moved = augment(images, 2, True, generator_for(0))
    assert (moved.shape, moved.dtype) == (images.shape, images.dtype)
    seen = set()
    for image, result in zip(images.numpy(), moved.numpy(), strict=True):
        found = []
        for flip in (False, True):
            source = image[:, :, ::-1] if flip else image
            padded = np.pad(source, ((0, 0), (2, 2), (2, 2)))
            for down in range(5):
                for right in range(5):
                    if np.array_equal(padded[:, down : down + 5, right : right + 6], result):
                        found.append((flip, down, right))
        assert len(found) == 1
        seen.add(found[0])
    assert {flip for flip, _, _ in seen} == {False, True}
    assert len(seen) > 40  # of 50


def test_no_augmentation_changes_nothing():
    images = torch.randint(0, 255, (8, 1, 4, 6), dtype=torch.uint8)
    assert torch.equal(augment(images, 0, False, generator_for(0)), images)


def test_warped_images_are_turned_stretched_and_slanted_by_the_strength_at_most():
    """Two ramps tell where each pixel was taken from: a rotation of a triangular matrix near the identity."""
    ramp = torch.linspace(-1, 1, 32).expand(32, 32)
    images = torch.stack([ramp, ramp.mT]).expand(300, 2, 32, 32)
    torch.testing.assert_close(augmentation.warp(images, 0.0, generator_for(0)), images, atol=1e-5, rtol=0)
    middle = augmentation.warp(images, 0.1, generator_for(0))[:, :, 8:24, 8:24]
    slopes = torch.stack([middle.diff(dim=3).mean(dim=(2, 3)), middle.diff(dim=2).mean(dim=(2, 3))], dim=2) * 31 / 2
    angle = torch.atan2(slopes[:, 1, 0], slopes[:, 0, 0])  # of the first column
    back = torch.stack([angle.cos(), angle.sin(), -angle.sin(), angle.cos()], dim=1).view(-1, 2, 2)
    rest = back @ slopes - torch.eye(2)
    torch.testing.assert_close(rest[:, 1, 0], torch.zeros(300), atol=1e-4, rtol=0)
    for drawn in (angle, rest[:, 0, 0], rest[:, 0, 1], rest[:, 1, 1]):
        assert -0.1001 < drawn.min() < -0.09 and 0.09 < drawn.max() < 0.1001


def test_recoloured_images_differ_by_the_strength_at_most():
    """What is grey stays grey; the mean moves by the brightness; differences grow or shrink by the contrast."""
    grey = torch.randn(200, 1, 6, 6, generator=generator_for(1)).expand(200, 3, 6, 6)
    changed = augmentation.recolour(grey, 0.3, generator_for(2))
    torch.testing.assert_close(changed, changed[:, :1].expand_as(changed))
    moved = (changed - grey).mean(dim=(1, 2, 3))
    assert 0.25 < moved.max() < 0.3001 and -0.3001 < moved.min() < -0.25
    ratio = changed.std(dim=(1, 2, 3)) / grey.std(dim=(1, 2, 3))
    assert 0.6999 < ratio.min() < 0.75 and 1.25 < ratio.max() < 1.3001
    red = torch.tensor([2.0, -1.0, -1.0])[None, :, None, None].expand(200, 3, 6, 6)
    saturated = augmentation.recolour(red, 0.3, generator_for(3))[:, 0, 0, 0] - augmentation.recolour(
        red, 0.3, generator_for(3)
    ).mean(dim=(1, 2, 3))
    assert saturated.min() < 1.3 and saturated.max() > 2.6  # 2 by the product of two factors
    assert torch.equal(augmentation.recolour(red, 0.0, generator_for(0)), red)


def test_erased_squares_lie_anywhere_and_are_cut_off_at_the_border():
    erased = augmentation.erase(torch.ones(500, 2, 10, 12), 4, generator_for(0)) == 0
    assert torch.equal(erased[:, 0], erased[:, 1])
    sizes = erased[:, 0].sum(dim=(1, 2))
    assert sizes.min() >= 1 and sizes.max() == 16 and (sizes == 16).sum() > 100
    assert erased[:, 0].any(dim=0).all()
    for square in erased[:, 0]:
        rows, cols = square.any(dim=1), square.any(dim=0)
        assert torch.equal(square, rows[:, None] & cols) and max(rows.sum(), cols.sum()) <= 4


def test_cutmix_pastes_a_rectangle_and_knows_its_share():
    images = torch.arange(1.0, 65.0)[:, None, None, None].expand(64, 3, 8, 6)
    shares = []
    for number in range(200):
        mixed, others, share = augmentation.cutmix(images, generator_for(number))
        assert sorted(others.tolist()) == list(range(64))
        pasted = mixed[:, 0] == (others + 1)[:, None, None]
        assert torch.equal(mixed[:, 0], torch.where(pasted, others[:, None, None] + 1.0, images[:, 0]))
        moved = others != torch.arange(64)
        assert pasted[moved].double().mean(dim=(1, 2)).tolist() == pytest.approx([share] * moved.sum().item())
        shares.append(share)
    assert min(shares) < 0.05 and max(shares) > 0.7
    assert images[0, 0, 0, 0] == 1  # the batch itself is left as it was


def test_generators_depend_on_all_their_numbers():
    draws = {
        tuple(torch.randint(1000, (4,), generator=generator_for(*n)).tolist()) for n in ((0,), (1,), (0, 1), (1, 0))
    }
    assert len(draws) == 4
    again = [torch.rand(3, generator=generator_for(2, 3)) for _ in range(2)]
    assert torch.equal(*again)


def test_learning_rate_rises_and_falls():
    recipe, steps = Recipe(learning_rate=0.1, warmup=0.2), 100
    rates = [recipe.learning_rate_at(step, steps) for step in range(steps)]
    assert rates[0] == pytest.approx(0.1 / 20)
    assert rates[19] == rates[20] == pytest.approx(0.1)
    assert rates == sorted(rates[:20]) + sorted(rates[20:], reverse=True)
    assert rates[60] == pytest.approx(0.05)
    assert 0 < rates[-1] < 1e-4
    assert [recipe.learning_rate_at(0, 1)] == [0.1]


# ------------------------------------------------------------------------------------------------- runs


def test_a_small_model_learns(digits):
    data = load_data("digits")
    model = small(data, d=32, d_ff=64)
    history = run(model, data, Recipe(epochs=8, batch_size=32, learning_rate=5e-3, shift=0, flip=False))
    assert [entry["epoch"] for entry in history] == list(range(1, 9))
    assert history[-1]["accuracy"] > 0.85
    assert history[-1]["loss"] < history[0]["loss"]
    assert history[-1]["accuracy"] == evaluate(model, data, CPU) == evaluate(model, data, CPU, batch_size=7)


HARD = {"flip": True, "warp": 0.1, "colour": 0.3, "erase": 2, "cutmix": 0.7, "muon": True}


def test_the_loss_of_mixed_images_asks_for_both_labels_by_their_areas(digits, monkeypatch):
    """A model that knows one image's label pays for the other's share alone."""
    labels = digits.train_labels[:32]
    others, answers = torch.arange(31, -1, -1), F.one_hot(labels, 10) * 1.0
    monkeypatch.setattr(training, "cutmix", lambda images, generator: (images, others, 0.25))
    monkeypatch.setattr(SmallViT, "forward", lambda self, images: self.head.bias.sum() * 0 + answers)
    recipe = dataclasses.replace(SHORT, cutmix=1.0, label_smoothing=0.0, shift=0)
    model = small(digits)
    optimizers = training._optimizers(model, recipe)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    loss = training._step(model, digits, torch.arange(32), recipe, CPU, optimizers, scaler, 0)
    rest = np.log(np.e + 9)  # of a softmax over a one and nine zeros
    wrong = (labels != labels[others]).double().mean().item()
    assert loss.item() == pytest.approx(rest - 1 + 0.25 * wrong, abs=1e-6)


def test_muon_turns_the_matrices_of_the_blocks_alone(digits):
    model = small(digits, positions="learned", registers=1)
    names = {parameter: name for name, parameter in model.named_parameters()}
    adamw, muon = training._optimizers(model, dataclasses.replace(SHORT, muon=True, weight_decay=0.3))
    layers = ("qkv", "proj", "fc1", "fc2")
    of = [[names[x] for group in one.param_groups for x in group["params"]] for one in (adamw, muon)]
    assert sorted(of[1]) == sorted(f"blocks.{block}.{layer}.weight" for block in range(2) for layer in layers)
    assert sorted(of[0] + of[1]) == sorted(names.values())
    assert {group["weight_decay"] for group in muon.param_groups} == {0.3}
    (alone,) = training._optimizers(model, SHORT)
    assert isinstance(alone, torch.optim.AdamW) and sum(len(group["params"]) for group in alone.param_groups) == len(
        names
    )


def test_with_all_that_is_hard_a_resumed_run_is_the_uninterrupted_one(digits, tmp_path, monkeypatch):
    recipe, path = dataclasses.replace(SHORT, **HARD), tmp_path / "run.pt"
    whole, model = small(digits), small(digits, seed=99)
    expected = run(whole, digits, recipe)
    with monkeypatch.context() as patch, pytest.raises(CutOffError):
        cut_off(patch, 7)
        run(small(digits), digits, recipe, checkpoint=path, every=0)
    history = run(model, digits, recipe, checkpoint=path)
    assert same_weights(whole, model) and history[-1]["loss"] == expected[-1]["loss"]


@pytest.mark.parametrize("part", HARD)
def test_every_part_of_a_recipe_has_a_say(digits, part):
    without, with_it = small(digits), small(digits)
    run(without, digits)
    run(with_it, digits, dataclasses.replace(SHORT, **{part: HARD[part]}))
    assert not same_weights(without, with_it)


def test_seconds_on_a_cpu_are_those_of_its_processors(digits, monkeypatch):
    """A run that was stopped for an hour has not taken one."""
    step, asleep = training._step, iter([True])

    def slept(*args):
        if next(asleep, False):
            time.sleep(1.5)
        return step(*args)

    monkeypatch.setattr(training, "_step", slept)
    seen = []
    run(small(digits), digits, dataclasses.replace(SHORT, epochs=1), after_epoch=seen.extend)
    assert 0 < seen[-1]["seconds"] < 1.5


def test_a_run_depends_on_its_seed_alone(digits):
    models = [small(digits) for _ in range(3)]
    torch.manual_seed(7)  # the global generator has no say
    run(models[0], digits)
    torch.manual_seed(8)
    run(models[1], digits)
    run(models[2], digits, dataclasses.replace(SHORT, seed=1))
    assert same_weights(models[0], models[1])
    assert not same_weights(models[0], models[2])


class CutOffError(Exception):
    pass


def cut_off(monkeypatch, at):
    """Let a run end before the step of this number."""
    step = training._step

    def until_cut(*args):
        if args[-1] == at:
            raise CutOffError
        return step(*args)

    monkeypatch.setattr(training, "_step", until_cut)


@pytest.mark.parametrize("positions", ["learned", "mixed"])
@pytest.mark.parametrize("cuts", [(1,), (3, 4, 5), (5, 8), (9,)])
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(digits, tmp_path, monkeypatch, cuts, positions):
    """Cut off before these steps, of 2 epochs of 5, and started again from the file."""
    whole = small(digits, positions=positions)
    expected = run(whole, digits)
    path, step = tmp_path / "run.pt", training._step
    for cut in (*cuts, None):

        def until_cut(*args, cut=cut):
            if args[-1] == cut:
                raise CutOffError
            return step(*args)

        monkeypatch.setattr(training, "_step", until_cut)
        seed = 99 if path.exists() else 0  # other weights: all must come from the file
        model = small(digits, seed, positions=positions)
        try:
            history = run(model, digits, checkpoint=path, every=0)
        except CutOffError:
            continue
    assert same_weights(whole, model)
    for entry, other in zip(expected, history, strict=True):
        for key in ("epoch", "loss", "accuracy", "learning_rate"):
            assert entry[key] == other[key], key


def test_a_finished_run_is_not_run_again(digits, tmp_path):
    model = small(digits)
    history = run(model, digits, checkpoint=tmp_path / "run.pt")
    fresh = small(digits, seed=5)
    assert run(fresh, digits, checkpoint=tmp_path / "run.pt") == history
    assert same_weights(model, fresh)


def test_a_checkpoint_is_written_whole_or_not_at_all(digits, tmp_path, monkeypatch):
    path, save = tmp_path / "run.pt", torch.save

    def second_one_breaks(content, file):
        if content["step"] < 2:
            return save(content, file)
        Path(file).write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(torch, "save", second_one_breaks)
    with pytest.raises(OSError, match="no space"):
        run(small(digits), digits, checkpoint=path, every=0)
    assert torch.load(path, weights_only=True)["step"] == 1


def test_a_checkpoint_of_another_run_is_refused(digits, tmp_path):
    path = tmp_path / "run.pt"
    run(small(digits), digits, checkpoint=path)
    with pytest.raises(ValueError, match=r"recipe.epochs 2 and not 3.*remove it"):
        run(small(digits), digits, dataclasses.replace(SHORT, epochs=3), checkpoint=path)
    with pytest.raises(ValueError, match=r"model.positions sincos and not none"):  # as many weights
        run(small(digits, positions="none"), digits, checkpoint=path)


FULL_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried ..."),
]


class Place:
    """Where a run can find the memory full; `fill` makes the call of this number do so."""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name

    def fill(self, monkeypatch, error, at):
        function, calls = getattr(self.owner, self.name), []

        def full(*args, **options):
            calls.append(1)
            if len(calls) == at:
                raise error
            return function(*args, **options)

        monkeypatch.setattr(self.owner, self.name, full)


BEFORE = {  # the first step
    "images to the device": Place(sets.Data, "to"),
    "model to the device": Place(nn.Module, "to"),
    "optimizer": Place(torch.optim.AdamW, "__init__"),
    "moments from the checkpoint": Place(torch.optim.AdamW, "load_state_dict"),
}
STEPS = {
    "batch": Place(training, "augment"),
    "forward": Place(SmallViT, "forward"),
    "loss": Place(F, "cross_entropy"),
    "backward": Place(torch.Tensor, "backward"),
    "clipping": Place(nn.utils, "clip_grad_norm_"),
    "moments": Place(torch.optim.AdamW, "step"),
    "evaluation": Place(training, "_accuracy"),
}


@pytest.mark.parametrize("error", FULL_MEMORY, ids=lambda error: str(error)[:30])
@pytest.mark.parametrize("place", [*BEFORE, *STEPS])
def test_out_of_memory_says_what_to_lower_and_keeps_the_checkpoint(digits, tmp_path, monkeypatch, place, error):
    path = tmp_path / "run.pt"
    with monkeypatch.context() as patch, pytest.raises(CutOffError):
        cut_off(patch, 3)
        run(small(digits), digits, checkpoint=path, every=0)
    kept = path.read_bytes()
    model = small(digits, seed=99)
    with monkeypatch.context() as patch:
        (BEFORE | STEPS)[place].fill(patch, error, at=1)
        with pytest.raises(MemoryError) as caught:
            run(model, digits, checkpoint=path)
    advice = "lower n_train of load_data, or the model's d or depth."
    if place in STEPS:
        advice = "lower batch_size (try 16). If that does not help, lower the model's d or depth, or"
    assert str(caught.value).startswith("out of memory on CPU") and advice in str(caught.value)
    assert caught.value.__cause__ is error
    whole, again = small(digits), small(digits, seed=99)
    if place != "evaluation":  # where two steps more were done, none of which is written yet
        assert path.read_bytes() == kept
    run(whole, digits)
    run(again, digits, checkpoint=path)
    assert same_weights(whole, again)


def test_other_errors_are_left_as_they_are(digits, monkeypatch):
    for place in (BEFORE | STEPS).keys() - {"moments from the checkpoint"}:
        with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="mat1 and mat2"):
            (BEFORE | STEPS)[place].fill(patch, RuntimeError("mat1 and mat2 shapes cannot be multiplied"), at=1)
            run(small(digits), digits)


def test_out_of_memory_while_compiling(digits, monkeypatch):
    def full(graph, inputs):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    compiled_by(monkeypatch, full)
    with pytest.raises(MemoryError, match=r"batch_size=32: lower batch_size \(try 16\)"):
        run(small(digits), digits, machine=Machine("cpu", "float32", True, "CPU"))


def test_out_of_memory_names_the_batch_size_that_was_given(digits, monkeypatch):
    STEPS["forward"].fill(monkeypatch, FULL_MEMORY[0], at=1)
    with pytest.raises(MemoryError, match=r"batch_size=50: lower batch_size \(try 25\)"):
        evaluate(small(digits), digits, CPU, batch_size=50)
    STEPS["forward"].fill(monkeypatch, FULL_MEMORY[0], at=1)
    with pytest.raises(MemoryError, match="batch_size=1: lower the model's d"):
        evaluate(small(digits), digits, CPU, batch_size=1)


def test_out_of_memory_lets_go_of_what_the_step_held(digits, monkeypatch):
    """A notebook keeps the error, and the next try needs the room."""
    held = []

    def remembering(images, *args):
        held.append(weakref.ref(images))
        return images.float()

    monkeypatch.setattr(training, "prepare", remembering)
    STEPS["backward"].fill(monkeypatch, FULL_MEMORY[0], at=1)
    with pytest.raises(MemoryError) as caught:
        run(small(digits), digits)
    assert [reference() for reference in held] == [None] and caught.value.__cause__ is FULL_MEMORY[0]


def test_the_test_needs_no_more_memory_than_the_training(digits):
    """Its batches are of the recipe's making, not of a size that a small machine does not hold."""
    model, sizes = small(digits), []
    model.register_forward_hook(lambda module, args, output: sizes.append(len(args[0])))
    run(model, digits, dataclasses.replace(SHORT, epochs=1))
    assert max(sizes) == 2 * SHORT.batch_size


def test_errors(digits):
    for batch_size in (0, 161):
        with pytest.raises(ValueError, match=f"batch_size.*160.*{batch_size}"):
            run(small(digits), digits, dataclasses.replace(SHORT, batch_size=batch_size))


def test_progress_and_curves(digits, capfd):
    seen = []
    train(small(digits), digits, SHORT, CPU, after_epoch=lambda history: seen.append(len(history)))
    out, err = capfd.readouterr()
    assert "10/10" in out
    assert "accuracy" in out
    assert err == ""  # nbgrader and the book take it for a failure
    assert seen == [1, 2]
    run(small(digits), digits)
    assert capfd.readouterr() == ("", "")


def test_other_patches_and_sizes_in_training(digits):
    recipe = dataclasses.replace(SHORT, patch_sizes=(2, 4), image_size=16)
    model = small(digits, image_size=(16, 16), patch_size=4, positions="learned")
    seen = set()
    model.register_forward_hook(
        lambda module, args, kwargs, output: seen.add((args[0].shape[-1], kwargs.get("patch_size"))), with_kwargs=True
    )
    run(model, digits, recipe)
    assert {(16, 2), (16, 4)} <= seen
    for size, patch_size in ((16, 4), (16, 2), (24, 4)):
        assert 0 <= evaluate(model, digits, CPU, size, patch_size) <= 1


# ------------------------------------------------------------- what only a GPU does, on the CPU

HALF = Machine("cpu", "float16", False, "CPU")


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_keeps_its_weights_in_single(digits, precision):
    model = small(digits, positions="axial", registers=1)
    kinds = set()
    model.blocks[1].fc1.register_forward_hook(lambda module, args, output: kinds.add(output.dtype))
    history = run(model, digits, machine=Machine("cpu", precision, False, "CPU"))
    assert kinds == {getattr(torch, precision)}
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert np.isfinite(history[-1]["loss"])
    reference = small(digits, positions="axial", registers=1)
    expected = run(reference, digits)
    assert abs(history[-1]["loss"] - expected[-1]["loss"]) < 0.05


@pytest.fixture(scope="module")
def learns():
    """A run in some precision that gets most of the digits right."""
    data = load_data("digits")
    recipe = Recipe(epochs=5, batch_size=32, learning_rate=5e-3, shift=0, flip=False)
    return functools.cache(
        lambda precision: run(small(data, d=32, d_ff=64), data, recipe, Machine("cpu", precision, False, "CPU"))
    )


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_mixed_precision_learns_as_single_does(learns, precision):
    expected, history = learns("float32"), learns(precision)
    assert history[-1]["accuracy"] > 0.65  # chance is 0.1; over seeds 0.73 to 0.79, whatever the precision
    assert history[-1]["accuracy"] == pytest.approx(expected[-1]["accuracy"], abs=0.1)
    for entry, other in zip(expected, history, strict=True):
        assert entry["loss"] == pytest.approx(other["loss"], abs=0.1)
        assert entry["learning_rate"] == other["learning_rate"]


class Scaled:
    """The optimizer and the scaler of a run in float16; the gradients of some steps are made to overflow."""

    def __init__(self, monkeypatch, overflow=()):
        step = training._step
        self.scales, self.weights, self.moments, self.counts, self.rates = [], [], [], [], []

        def watched(forward, data, batch, recipe, machine, optimizers, scaler, number):
            parameter = forward.blocks[0].fc1.weight
            hook = number in overflow and parameter.register_hook(lambda grad: torch.full_like(grad, torch.inf))
            loss = step(forward, data, batch, recipe, machine, optimizers, scaler, number)
            if hook:
                hook.remove()
            state = optimizers[0].state[parameter]
            self.scales.append(scaler.get_scale())
            self.weights.append([weight.detach().clone() for weight in forward.parameters()])
            self.moments.append((state["exp_avg"].clone(), state["exp_avg_sq"].clone()))
            self.counts.append(int(state["step"]))
            self.rates.append(optimizers[0].param_groups[0]["lr"])
            return loss

        monkeypatch.setattr(training, "_step", watched)


def test_a_step_that_overflows_in_float16_is_left_out(digits, monkeypatch):
    """Step 0, before the optimizer has any state, and steps 3 and 6."""
    seen, model = Scaled(monkeypatch, overflow=(0, 3, 6)), small(digits)
    start = [weight.detach().clone() for weight in model.parameters()]
    history = run(model, digits, machine=HALF)
    factors = np.array(seen.scales) / np.array([65536.0, *seen.scales[:-1]])
    assert factors.tolist() == [0.5 if step in (0, 3, 6) else 1.0 for step in range(10)]
    assert seen.counts == [0, 1, 2, 2, 3, 4, 4, 5, 6, 7]
    weights = [start, *seen.weights]
    for step in range(10):
        same = all(torch.equal(*pair) for pair in zip(weights[step], weights[step + 1], strict=True))
        assert same == (step in (0, 3, 6)), step
    for step in (3, 6):
        assert all(torch.equal(*pair) for pair in zip(seen.moments[step - 1], seen.moments[step], strict=True))
    assert seen.rates == [SHORT.learning_rate_at(step, 10) for step in range(10)]
    assert [entry["epoch"] for entry in history] == [1, 2]
    assert all(np.isfinite(entry["loss"]) for entry in history)
    assert all(torch.isfinite(weight).all() for weight in model.parameters())


def test_the_scale_goes_on_from_the_checkpoint(digits, tmp_path, monkeypatch):
    path = tmp_path / "run.pt"
    with monkeypatch.context() as patch:
        whole = small(digits)
        expected = Scaled(patch, overflow=(1, 2))
        run(whole, digits, machine=HALF)
    with monkeypatch.context() as patch:
        Scaled(patch, overflow=(1, 2))
        with pytest.raises(CutOffError):
            cut_off(patch, 6)
            run(small(digits), digits, machine=HALF, checkpoint=path, every=0)
    saved = torch.load(path, weights_only=True)["scaler"]
    assert (saved["scale"], saved["_growth_tracker"]) == (16384.0, 3)  # halved twice; three good steps since
    resumed, seen = small(digits, seed=99), Scaled(monkeypatch)
    run(resumed, digits, machine=HALF, checkpoint=path)
    assert seen.scales == expected.scales[6:] == [16384.0] * 4
    assert same_weights(whole, resumed)


@pytest.mark.parametrize("reads", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("writes", ["float32", "bfloat16", "float16"])
def test_a_checkpoint_of_one_machine_goes_on_another(digits, tmp_path, monkeypatch, writes, reads):
    """As from a T4, whose gradients are scaled, to an L4 or a CPU, where they are not, and back."""
    path, before, after = tmp_path / "run.pt", *(Machine("cpu", kind, False, "CPU") for kind in (writes, reads))
    expected = run(small(digits), digits)
    with monkeypatch.context() as patch, pytest.raises(CutOffError):
        cut_off(patch, 7)
        run(small(digits), digits, machine=before, checkpoint=path, every=0)
    history = run(small(digits, seed=99), digits, machine=after, checkpoint=path)
    assert [entry["epoch"] for entry in history] == [1, 2]
    assert history[1]["loss"] == pytest.approx(expected[1]["loss"], abs=0.05)
    scaler = torch.load(path, weights_only=True)["scaler"]
    assert (scaler != {}) == (reads == "float16")


def test_a_checkpoint_is_read_onto_the_cpu_whatever_device_wrote_it(digits, tmp_path, monkeypatch):
    path, seen = tmp_path / "run.pt", []
    run(small(digits), digits, checkpoint=path)
    load = torch.load
    monkeypatch.setattr(torch, "load", lambda *args, **options: seen.append(options) or load(*args, **options))
    run(small(digits), digits, checkpoint=path)
    assert seen == [{"map_location": "cpu", "weights_only": True}]
    content = load(path, weights_only=True)
    tensors = [*content["model"].values(), *(x for s in content["optimizers"][0]["state"].values() for x in s.values())]
    assert len(tensors) > 50 and {tensor.device.type for tensor in tensors} == {"cpu"}


def compiled_by(monkeypatch, backend):
    """Let `torch.compile` use another backend: its own takes half a minute to start."""
    compile = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model: compile(model, backend=backend))
    torch.compiler.reset()


@pytest.mark.parametrize(
    "backend", ["aot_eager", pytest.param("inductor", marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
@pytest.mark.parametrize("positions", ["axial", "learned"])
def test_a_compiled_run_is_close_to_a_plain_one(digits, monkeypatch, tmp_path, backend, positions):
    """With patches of two sizes; its checkpoint is that of a plain run, and the other way round."""
    compiled_by(monkeypatch, backend)
    recipe, compiles = dataclasses.replace(SHORT, patch_sizes=(2, 4)), Machine("cpu", "float32", True, "CPU")
    plain = run(small(digits, positions=positions), digits, recipe)
    one = run(small(digits, positions=positions), digits, recipe, compiles)
    for entry, other in zip(plain, one, strict=True):
        assert entry["loss"] == pytest.approx(other["loss"], abs=1e-2)
    for first, second in ((compiles, CPU), (CPU, compiles)):
        path = tmp_path / f"{first.compile}.pt"
        with monkeypatch.context() as patch, pytest.raises(CutOffError):
            cut_off(patch, 4)
            run(small(digits, positions=positions), digits, recipe, first, checkpoint=path, every=0)
        history = run(small(digits, 99, positions=positions), digits, recipe, second, checkpoint=path)
        assert history[-1]["loss"] == pytest.approx(plain[-1]["loss"], abs=1e-2)


def test_weight_decay_keeps_to_matrices(digits):
    """With a learning rate that only decay can use, biases, norms and tokens stay."""
    model = small(digits, positions="learned", registers=2)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    (decaying, others) = training.decay_groups(model, 0.5)
    optimizer = torch.optim.AdamW([decaying, others], lr=0.1)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    moved = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    layers = {name for name, module in model.named_modules() if isinstance(module, (nn.Linear, nn.Conv2d))}
    assert moved == {f"{name}.weight" for name in layers}


# ---------------------------------------------------------------------------------- machine and results


def test_machine_of_this_computer():
    machine = pick_machine()
    if not torch.cuda.is_available():
        assert (machine.device, machine.precision, machine.compile) == ("cpu", "float32", False)
        assert "CPU" in machine.name


@pytest.mark.parametrize(
    "name, capability, precision, compiles",
    [
        ("Tesla K80", (3, 7), "float16", False),
        ("Tesla P100-PCIE-16GB", (6, 0), "float16", False),
        ("Tesla V100-SXM2-16GB", (7, 0), "float16", True),
        ("Tesla T4", (7, 5), "float16", True),
        ("NVIDIA A100-SXM4-40GB", (8, 0), "bfloat16", True),
        ("NVIDIA L4", (8, 9), "bfloat16", True),
        ("NVIDIA H200", (9, 0), "bfloat16", True),
    ],
)
def test_machines_with_a_gpu(monkeypatch, name, capability, precision, compiles):
    """torch's own answers over what the driver says of the device; a T4 could emulate bfloat16, many times slower."""
    properties = SimpleNamespace(name=name, major=capability[0], minor=capability[1])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device=None: properties)
    monkeypatch.setattr(torch.cuda, "_check_bf16_tensor_supported", lambda device: True)
    assert pick_machine() == Machine("cuda", precision, compiles, name)


FULL = {"epochs": 60, "d": 192, "data": "cifar10", "least": {"accuracy": 0.8}}
REDUCED = {"epochs": 3, "d": 64, "data": "cifar10", "least": {"accuracy": 0.5}}
TINY = {"epochs": 1, "d": 64, "data": "digits", "least": {"accuracy": 0.3}}
GPU = dataclasses.replace(CPU, device="cuda")


def test_without_a_gpu_it_says_what_is_smaller(monkeypatch, capsys):
    monkeypatch.delenv("COURSE_SIZE", raising=False)
    assert settings_for(CPU, FULL, REDUCED, TINY) == REDUCED | {"size": "reduced"}
    said = capsys.readouterr().out.splitlines()
    assert "No GPU here" in said[0] and said[1:3] == ["  epochs 3 instead of 60", "  d 64 instead of 192"]
    assert "COURSE_SIZE=full" in said[3] and len(said) == 4
    assert settings_for(GPU, FULL, REDUCED, TINY) == FULL | {"size": "full"}
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("machine", [CPU, GPU])
@pytest.mark.parametrize(("size", "settings"), [("full", FULL), ("reduced", REDUCED), ("tiny", TINY)])
def test_one_switch_sets_the_size_on_any_machine(monkeypatch, capsys, machine, size, settings):
    monkeypatch.setenv("COURSE_SIZE", size)
    monkeypatch.setenv("COURSE_CHECKPOINTS", "somewhere")
    setting = settings_for(machine, FULL, REDUCED, TINY)
    assert setting == settings | {"size": size}
    assert ("was asked for" in capsys.readouterr().out) == (size != "full")
    assert checkpoint_for(setting, "a run") == (Path("somewhere/a run.pt") if size == "full" else None)


def test_a_size_that_does_not_exist_is_named(monkeypatch):
    monkeypatch.setenv("COURSE_SIZE", "Full")
    with pytest.raises(ValueError, match="full, reduced, tiny, not 'Full'"):
        settings_for(CPU, FULL, REDUCED, TINY)


def test_kept_runs_are_those_of_the_size_and_of_other_seeds(monkeypatch, tmp_path):
    monkeypatch.setattr(training, "RESULTS", tmp_path)
    assert kept_runs("page", "full") == []
    like = {"size": "full", "precision": "float32", "without": False}
    others = [like | {"size": "tiny"}, like | {"precision": "bfloat16"}, like | {"without": True}]
    runs = [like | {"seed": seed, "measured": seed} for seed in (2, 0, 1)]
    runs += [one | {"seed": 3, "measured": 3} for one in others]
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "page.json").write_text(json.dumps(runs))
    assert kept_runs("page", "full") == [0, 1, 2]
    assert kept_runs("page", "full", 1) == [0, 2]


def test_a_commit_is_clean_where_only_results_have_changed(tmp_path, monkeypatch):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    gpu = tmp_path / "book" / "gpu"
    (gpu / "results").mkdir(parents=True)
    code, kept = gpu / "training.py", gpu / "results" / "a.json"
    for path in (code, kept):
        path.write_text("1")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True)
    monkeypatch.setattr(training, "__file__", str(code))
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    kept.write_text("2")
    assert head.startswith(describe_run(CPU)["commit"])
    code.write_text("2")
    assert describe_run(CPU)["commit"].endswith("-dirty")


def test_results_say_where_they_come_from(tmp_path):
    path = tmp_path / "results" / "a.json"
    write_result(path, [{"accuracy": 0.9}], CPU, recipe=RECIPES["digits"], model={"d": 16})
    content = json.loads(path.read_text())
    assert content["results"] == [{"accuracy": 0.9}]
    assert content["settings"]["recipe"]["batch_size"] == 64
    assert content["settings"]["model"] == {"d": 16}
    assert content["machine"]["torch"] == torch.__version__
    assert set(content) == {"settings", "machine", "date", "commit", "results"}


def test_kept_weights_come_back_with_what_is_known_of_them(digits, tmp_path):
    model, path = small(digits, positions="mixed", pooling="map", registers=1), tmp_path / "results" / "colour.npz"
    training.keep_weights(path, model, accuracy=0.83, classes=digits.classes)
    assert path.stat().st_size < 3 * sum(x.numel() for x in model.parameters()) + 20_000
    loaded, about = training.load_colour_model(path)
    assert (about["accuracy"], about["classes"]) == (0.83, list("0123456789")) and not loaded.training
    for weight, kept in zip(model.parameters(), loaded.parameters(), strict=True):
        assert kept.dtype == torch.float32 and torch.equal(kept, weight.half().float())
    assert evaluate(loaded, digits, CPU) == pytest.approx(evaluate(model, digits, CPU), abs=0.01)
