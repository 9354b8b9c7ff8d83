"""Run the notebooks of the GPU pages from top to bottom and keep what they measure.

    python benchmarks/runs/notebooks.py --size full --seeds 0 1 2

or `make gpu-pages` for everything that is kept. What is done stands in book/gpu/results/notebooks/, run by run, and
is not done again; training that was cut off goes on from its checkpoint in `_build/runs/notebooks`.

`--without` takes away what a page claims (positions, right labels, the optimizer's part of a checkpoint), to show
that its assertions notice.
"""

import argparse
import json
import os
import re
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from plain import NOTEBOOKS, PAGES

from book.gpu.training import RESULTS, SIZES, Machine, describe_run

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "_build" / "runs" / "notebooks"
HOURS = 3600

# Code that stands before a page's own and takes away what the page claims
LABELS = """
import torch
from book.gpu import data as sets
right_labels = sets.load_data
def wrong_labels(*arguments, **options):
    data = right_labels(*arguments, **options)
    order = torch.randperm(len(data.train_labels), generator=torch.Generator().manual_seed(0))
    data.train_labels.copy_(data.train_labels[order])
    return data
sets.load_data = wrong_labels
"""
CHECKPOINT = """
from book.gpu import training
whole_read = training._read
def without_the_optimizer(path, model, optimizer, scaler, recipe):
    fresh = optimizer.state_dict()
    state = whole_read(path, model, optimizer, scaler, recipe)
    optimizer.load_state_dict(fresh)
    return state
training._read = without_the_optimizer
"""
# The model without positions gets axial ones, and the others none
POSITIONS = """
from solutions import small_vit
class WrongPositions(small_vit.SmallViT):
    def __init__(self, *arguments, positions="sincos", **options):
        super().__init__(*arguments, positions="axial" if positions == "none" else "none", **options)
small_vit.SmallViT = WrongPositions
"""
# The new grid is laid over the old one upside down and from right to left, the trained one too
COORDINATES = """
from solutions import small_vit
right_coordinates = small_vit.SmallViT.coordinates_of
def wrong_coordinates(model, grid):
    places = right_coordinates(model, grid)
    return places.flip(1) if model.coordinates == "relative" else places
small_vit.SmallViT.coordinates_of = wrong_coordinates
"""
SIZES_OF_PATCHES = """
import dataclasses
from book.gpu import training
whole_train = training.train
def train_at_one_size(model, data, recipe, *arguments, **options):
    return whole_train(model, data, dataclasses.replace(recipe, patch_sizes=()), *arguments, **options)
training.train = train_at_one_size
"""
WITHOUT = {
    "small_vit": LABELS + CHECKPOINT,
    "position_ablation": POSITIONS,
    "flexible_patches": SIZES_OF_PATCHES,
    "resolution_transfer": COORDINATES,
}
PRECISION = """
from book.gpu import training
training.pick_machine = lambda: training.Machine("cpu", {precision!r}, False, "CPU in {precision}")
"""


def run(page, size, seed=0, precision=None, without=False, checkpoints=None):
    """Run a page's notebook from top to bottom.

    Parameters
    ----------
    page : str
    size : str
        One of SIZES.
    seed : int
    precision : str, optional
        On a CPU, of matrix products, "float32" or "bfloat16". By default whatever the machine does best.
    without : bool
        Take away what the page claims.
    checkpoints : path, optional
        Folder for them.

    Returns
    -------
    dict
        `measured`: what the page found, by name; `setting`: that of its run; `seconds`; `failed`: the errors of its
        cells; the ones after them are run all the same.
    """
    notebook = nbformat.read(NOTEBOOKS / f"{page}.ipynb", as_version=4)
    seeded = 0
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.source, found = re.subn(r"^seed = 0$", f"seed = {seed}", cell.source, flags=re.MULTILINE)
            seeded += found
    if seeded != 1:
        raise ValueError(f"{page}: the line `seed = 0` stands {seeded} times in the notebook and not once")
    before = (PRECISION.format(precision=precision) if precision else "") + (WITHOUT[page] if without else "")
    place = next(number for number, cell in enumerate(notebook.cells) if cell.get("id") == "place")
    notebook.cells.insert(place + 1, nbformat.v4.new_code_cell(before or "pass"))
    tell = "print(json.dumps({'measured': noted, 'setting': setting, 'machine': dataclasses.asdict(machine)}))"
    notebook.cells.append(nbformat.v4.new_code_cell(tell))
    began = time.perf_counter()
    client = NotebookClient(notebook, timeout=3 * HOURS, allow_errors=True, kernel_name="python3",
                            resources={"metadata": {"path": str(NOTEBOOKS)}})  # fmt: skip
    environment = os.environ | {"COURSE_SIZE": size, "COURSE_CHECKPOINTS": str(checkpoints or SCRATCH)}
    with client.setup_kernel(env=environment):
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    told = json.loads("".join(notebook.cells[-1].outputs[0].text))
    failed = [f"{one.ename}: {one.evalue}" for one in outputs if one.output_type == "error"]
    return told | {"seconds": round(time.perf_counter() - began, 1), "failed": failed}


def kept(page):
    path = RESULTS / "notebooks" / f"{page}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def keep(page, one):
    """Add a run to those of its page."""
    path = RESULTS / "notebooks" / f"{page}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    runs = sorted([*kept(page), one], key=lambda run: [SIZES.index(run["size"]), *key_of(run)[1:]])
    path.write_text("[\n" + ",\n".join(json.dumps(run) for run in runs) + "\n]\n", encoding="utf-8")


def key_of(run):
    return run["size"], run["precision"], run["without"], run["seed"]


def plan(sizes, seeds):
    """What is kept: every seed in float32, one in bfloat16, and one without what the page claims."""
    for size in sizes:
        for seed in seeds:
            yield {"size": size, "precision": "float32", "without": False, "seed": seed}
        yield {"size": size, "precision": "bfloat16", "without": False, "seed": 0}
        yield {"size": size, "precision": "float32", "without": True, "seed": 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", nargs="+", choices=PAGES, default=PAGES)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES[::-1])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options = parser.parse_args()
    for one in plan(options.sizes, options.seeds):
        for page in options.pages:
            if any(key_of(run) == key_of(one) for run in kept(page)):
                continue
            folder = SCRATCH / "-".join([page, *map(str, one.values())])
            found = run(page, **one, checkpoints=folder)
            machine = Machine(**found.pop("machine"))
            keep(page, one | describe_run(machine) | found)
            print(page, one, found["measured"], f"{found['seconds']} s", *found["failed"], flush=True)


if __name__ == "__main__":
    main()
