"""The run of the model in colour: its search, what it keeps, and what it does not run again."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest
import torch

from book.gpu import training
from book.gpu.data import load_data
from book.gpu.training import Recipe, load_colour_model
from solutions.small_vit import SmallViT

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "runs")]

import colour  # noqa: E402


def test_a_search_goes_on_from_the_best_of_each_stage():
    table = {(): 0.5, ("a",): 0.6, ("b",): 0.7, ("b", "c"): 0.65, ("b", "d"): 0.9, ("b", "d", "e"): 0.8}
    asked = []

    def note(changes, minutes):
        asked.append((tuple(changes), minutes))
        return table[tuple(changes)] - (0.3 if minutes == 9 and "d" in changes else 0)

    stages = [(2, [{"a": 1}, {"b": 1}]), (2, [{"c": 1}, {"d": 1}])]
    assert colour.search(stages, {}, note) == {"b": 1, "d": 1}
    assert asked == [((), 2), (("a",), 2), (("b",), 2), (("b",), 2), (("b", "c"), 2), (("b", "d"), 2)]
    assert colour.minutes_of(stages) == 10  # ("b",) is known in the second stage
    assert colour.minutes_of([*stages, (9, [{"e": 1}])]) == 28
    assert colour.search([(2, [{"a": 1}])], {"b": 1, "d": 1}, lambda changes, _: "a" not in changes) == {"b": 1, "d": 1}


def test_what_is_trained_is_of_the_size_that_was_agreed():
    data = type("Sizes", (), {"sizes": {"image_size": (32, 32), "channels": 3, "classes": 10}})
    for _, tried in colour.STAGES:
        for changes in tried:
            weights = sum(x.numel() for x in colour.model_of(data, changes).parameters())
            assert 500_000 <= weights <= 900_000, changes
            settings, _, recipe = colour.parts_of(changes, colour.RECIPE)
            assert settings["patch_size"] == 4
            assert set(changes) <= set(settings) | {"table_std"} | {f.name for f in dataclasses.fields(recipe)}


@pytest.fixture
def short(tmp_path, monkeypatch):
    """A whole run in seconds: digits, a small model, one step for what has to take minutes, ours in place of timm's."""
    digits = load_data("digits", n_train=256)
    few = dataclasses.replace(digits, test_images=digits.test_images[:64], test_labels=digits.test_labels[:64])
    model = {"patch_size": 2, "d": 16, "depth": 1, "n_heads": 2, "d_ff": 32, "positions": "learned", "pooling": "cls"}
    recipe = Recipe(batch_size=64, shift=1, flip=False)
    for name, value in {
        "RESULT": tmp_path / "colour.json",
        "WEIGHTS": tmp_path / "colour.npz",
        "RUNS": tmp_path / "runs",
        "HELD_OUT": 64,
        "MODEL": model,
        "RECIPE": recipe,
        "PLAIN": recipe,
        "LIBRARIES": {"ours": (colour.model_of, recipe), "timm": (colour.model_of, recipe)},
        "STAGES": [(2, [{"learning_rate": 1e-9}, {"muon": True}]), (4, [{"depth": 2}])],
        "PLAIN_STAGE": (2, [{"learning_rate": 1e-9}]),
        "load_data": {"cifar10": few}.get,
        "rate_of": lambda model, data, recipe, machine: 2.0,  # so 2 minutes are 240 images: an epoch
        "describe_run": lambda machine: {"commit": "abc"},
        "HOURS": 512 / 7200,
    }.items():
        monkeypatch.setattr(colour, name, value)
    return tmp_path


def test_a_run_from_start_to_end(short, monkeypatch):
    colour.main()
    content = json.loads((short / "colour.json").read_text())
    settings, results = content["settings"], content["results"]
    ours = [run for run in results["search"] if run["library"] == "ours"]
    assert settings["data"] == "CIFAR-10, re-encoded as JPEG" and settings["recipes_tried"] == {"ours": 5, "timm": 2}
    assert [run["minutes"] for run in ours] == [2, 2, 2, 4, 4] and [run["epochs"] for run in ours] == [1, 1, 1, 2, 2]
    assert ours[1]["accuracy"] < 0.3 and all(run["commit"] == "abc" for run in results["search"])
    best = max(ours[:3], key=lambda run: run["accuracy"])["changes"]
    assert results["chosen"]["ours"] == max(ours[3:], key=lambda run: run["accuracy"])["changes"]
    assert best.items() <= results["chosen"]["ours"].items()
    assert results["budget"]["hours"]["search"] == pytest.approx((2 * 3 + 4 * 2) / 60)
    assert results["budget"]["images"]["ours"] == 512
    assert {library: run["recipe"]["epochs"] for library, run in results["models"].items()} == {"ours": 2, "timm": 2}
    model, about = load_colour_model(short / "colour.npz")
    assert isinstance(model, SmallViT) and about["accuracy"] == results["models"]["ours"]["accuracy"]
    data = colour.load_data("cifar10")
    images = (data.test_images.float() - torch.tensor(about["mean"])[:, None, None]) / torch.tensor(about["std"])[0]
    with torch.no_grad():
        right = (model(images).argmax(dim=1) == data.test_labels).double().mean().item()
    assert right == pytest.approx(about["accuracy"])

    monkeypatch.setattr(colour, "train", lambda *arguments, **options: pytest.fail("what is kept is not run again"))
    colour.main()
    assert json.loads((short / "colour.json").read_text())["results"] == results


class CutOffError(Exception):
    pass


@pytest.mark.parametrize("steps", [2, 9, 25, 33, 40])
def test_a_run_that_is_cut_off_ends_as_one_that_is_not(short, monkeypatch, steps):
    def found():
        results = json.loads((short / "colour.json").read_text())["results"]
        for run in [*results["search"], *(run for model in results["models"].values() for run in model["history"])]:
            del run["seconds"], run["images_per_second"]
        return results

    colour.main()
    expected, step, left = found(), training._step, iter(range(steps))
    for path in short.rglob("*.*"):
        path.unlink()

    def until_cut(*arguments):
        if next(left, None) is None:
            raise CutOffError
        return step(*arguments)

    with monkeypatch.context() as patch, pytest.raises(CutOffError):
        patch.setattr(training, "_step", until_cut)
        colour.main()
    colour.main()
    assert found() == expected


@pytest.mark.parametrize("commit", [None, "abc-dirty"])
def test_a_commit_that_is_not_clean_is_refused(short, monkeypatch, commit):
    monkeypatch.setattr(colour, "describe_run", lambda machine: {"commit": commit})
    with pytest.raises(SystemExit, match=f"the commit is {commit}.*clean"):
        colour.main()
    assert not (short / "colour.json").exists()
