"""The scripts behind the kept results of the GPU chapters, and the results themselves."""

import dataclasses
import functools
import json
import statistics
import sys
from pathlib import Path

import jupytext
import numpy as np
import pytest
import torch

from book.gpu.training import SIZES, Machine, Recipe
from solutions.patchify import patchify, unpatchify
from solutions.positions import sincos_2d
from solutions.resolution import resize_pos_embed
from solutions.small_vit import POSITIONS, SmallViT

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "runs"))

import notebooks  # noqa: E402
import position_ablation  # noqa: E402
import resolution_transfer  # noqa: E402


def kept(name):
    return json.loads((ROOT / "book" / "gpu" / "results" / f"{name}.json").read_text())


def test_shuffled_patches_are_those_of_the_first_chapters():
    rng = np.random.default_rng(0)
    images = rng.normal(size=(3, 3, 8, 12))  # (B, C, H, W)
    orders = rng.permuted([range(6)] * 3, axis=1)
    ours = position_ablation.shuffle_patches(torch.tensor(images), 4, torch.tensor(orders))
    for image, order, shuffled in zip(images.transpose(0, 2, 3, 1), orders, ours, strict=True):
        expected = unpatchify(patchify(image, 4)[order], 8, 12, 4)
        assert np.array_equal(shuffled.permute(1, 2, 0), expected)


def test_every_image_gets_an_order_of_its_own():
    orders = position_ablation.random_orders(50, 9, seed=1)
    assert (orders.sort(dim=1).values == torch.arange(9)).all()
    assert len(orders.unique(dim=0)) == 50


def test_sines_as_a_table_are_interpolated_and_nothing_else_changes():
    torch.manual_seed(0)
    model = SmallViT((12, 20), 4, d=16, depth=1, n_heads=2, positions="sincos", pooling="mean_then_norm")
    torch.nn.init.normal_(model.head.weight)
    table = resolution_transfer.as_table(model)
    expected = resize_pos_embed(sincos_2d(3, 5, 16), 0, (3, 5), (6, 7))
    assert np.allclose(table.position_table((6, 7)).detach(), expected, atol=1e-6)

    small, large = torch.randn(2, 1, 12, 20), torch.randn(2, 1, 24, 28)
    assert torch.equal(table(small), model(small))
    assert not torch.allclose(table(large), model(large), atol=1e-3)


@pytest.mark.parametrize("script", [position_ablation, resolution_transfer])
def test_kept_results_are_those_of_the_script(script):
    settings = kept(script.__name__)["settings"]
    assert settings["model"] == script.MODEL
    recipe = Recipe(**settings["recipe"])  # options that came after the run are as they were without
    assert json.dumps(dataclasses.asdict(recipe)) == json.dumps(dataclasses.asdict(script.RECIPE))
    assert settings["n_train"] == script.N_TRAIN


def test_every_scheme_was_run_with_the_same_seeds():
    runs = kept("position_ablation")["results"]
    seeds = {run["seed"] for run in runs.values()}
    assert len(seeds) >= 3
    assert {f"{positions}-{seed}" for positions in POSITIONS for seed in seeds} <= set(runs)
    counts = [round(run["accuracy"] * 10_000, 6) for run in runs.values()]
    assert all(count == int(count) and 1000 < count < 10_000 for count in counts)  # all 10,000 test images


def test_a_bag_of_patches_did_not_notice_the_shuffle_and_all_others_did():
    runs = [run for run in kept("position_ablation")["results"].values() if "accuracy_mixed_up" in run]
    assert {run["positions"] for run in runs} == set(POSITIONS)
    for run in runs:
        lost = run["accuracy"] - run["accuracy_mixed_up"]
        assert abs(lost) < 1e-3 if run["positions"] == "none" else lost > 0.1


def test_at_the_size_of_training_all_ways_of_a_scheme_are_one():
    runs = kept("resolution_transfer")["results"]
    curves = [run for run in runs.values() if "28" in run["accuracy"]]
    assert len(curves) >= 30
    for positions in POSITIONS:
        for seed in {run["seed"] for run in curves}:
            known = {r["accuracy"]["28"] for r in curves if (r["positions"], r["seed"]) == (positions, seed)}
            assert len(known) == 1


def test_the_same_trained_models_stand_behind_both_pages():
    trained, curves = kept("position_ablation")["results"], kept("resolution_transfer")["results"]
    for run in curves.values():
        if "28" in run["accuracy"]:  # a thousand of the ten thousand test images
            assert abs(run["accuracy"]["28"] - trained[f"{run['positions']}-{run['seed']}"]["accuracy"]) < 0.04


# ------------------------------------------------------------------------------- the notebooks, run whole at each size


@functools.cache
def settings_of(page):
    """The settings of a page by size, as its source has them."""
    cells = jupytext.read(ROOT / "book" / "gpu" / f"{page}.md", fmt="md:myst").cells
    (cell,) = (cell for cell in cells if cell.cell_type == "code" and "settings_for(\n" in cell.source)
    told = {}

    def note(machine, **sizes):
        told.update(sizes)
        return sizes["tiny"]

    machine = Machine("cpu", "float32", False, "CPU")
    names = {"dataclasses": dataclasses, "pick_machine": lambda: machine, "settings_for": note}
    exec(cell.source.partition("\ndata = ")[0], names | {"load_data": None})
    return told


def runs_of(page, size, **like):
    runs = [run for run in notebooks.kept(page) if run["size"] == size]
    return [run for run in runs if all(run[key] == value for key, value in like.items())]


ALL = pytest.mark.parametrize(("page", "size"), [(page, size) for page in notebooks.PAGES for size in SIZES])


@ALL
def test_every_bound_of_a_page_lies_twice_the_spread_under_what_its_seeds_gave(page, size):
    runs, least = runs_of(page, size, precision="float32", without=False), settings_of(page)[size]["least"]
    assert len(runs) >= 3 and least
    for name, bound in least.items():
        values = [run["measured"][name] for run in runs]
        assert statistics.mean(values) - bound >= 2 * statistics.stdev(values), (name, bound, values)


@ALL
def test_every_bound_is_missed_where_what_the_page_claims_is_taken_away(page, size):
    (run,), least = runs_of(page, size, without=True), settings_of(page)[size]["least"]
    for name, bound in least.items():
        assert run["measured"][name] < bound, (name, bound, run["measured"][name])


@ALL
def test_the_notebooks_ran_from_top_to_bottom_also_in_bfloat16(page, size):
    runs, least = runs_of(page, size, without=False), settings_of(page)[size]["least"]
    assert {run["precision"] for run in runs} == {"float32", "bfloat16"}
    for run in runs:
        assert all(run["measured"][name] >= bound for name, bound in least.items()), run["measured"]
        assert run["setting"]["size"] == size
        assert {key: run["setting"][key] for key in settings_of(page)[size] if key != "least"} == {
            key: json.loads(json.dumps(value)) for key, value in settings_of(page)[size].items() if key != "least"
        }


@pytest.mark.parametrize("page", notebooks.PAGES)
def test_kept_runs_of_the_notebooks_say_where_they_come_from_and_hold_no_output(page):
    for run in notebooks.kept(page):
        assert not run["commit"].endswith("-dirty") and run["date"] and run["machine"]["name"]
        assert len(json.dumps(run)) < 3000


@pytest.mark.parametrize("page", notebooks.PAGES)
def test_a_notebook_runs_whole_at_the_tests_size_in_bfloat16(page, tmp_path, kept_as_cells):
    def run():
        found = notebooks.run(page, "tiny", seed=7, precision="bfloat16", checkpoints=tmp_path)
        return found | {"left": [path.name for path in tmp_path.iterdir()]}

    found = kept_as_cells([notebooks.NOTEBOOKS / f"{page}.ipynb", notebooks.__file__, __file__], run)
    assert found["failed"] == []
    assert found["machine"]["precision"] == "bfloat16" and found["setting"]["size"] == "tiny"
    assert found["left"] == []  # so short a run leaves no checkpoint
