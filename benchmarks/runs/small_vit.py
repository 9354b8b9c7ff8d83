"""Train the model of the chapter *A small ViT, whole* and keep what its page shows.

    OMP_NUM_THREADS=1 python benchmarks/runs/small_vit.py

takes about seven minutes of one core. A run that was cut off goes on where it stopped (`_build/runs/small_vit.pt`).
"""

import statistics
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from book.gpu.data import load_data, prepare
from book.gpu.training import Recipe, pick_machine, train, write_result
from solutions.small_vit import Block, SmallViT, attention_maps

ROOT = Path(__file__).resolve().parents[2]
MODEL = {"patch_size": 4, "d": 64, "depth": 3, "n_heads": 4, "d_ff": 128, "positions": "learned"}
RECIPE = Recipe(epochs=4, batch_size=256, learning_rate=4e-3, label_smoothing=0.0, shift=0)
SHOWN = 4  # test images whose attention is kept
BLOCK = {"d": 64, "n_heads": 4, "d_ff": 256}
LENGTHS = [2**k for k in range(6, 13)]
# The rate of the page's first loop, chosen on digits that are held out of its training images
FIRST = {"patch_size": 2, "d": 64, "depth": 3, "n_heads": 4, "d_ff": 128, "positions": "learned"}
RATES, HELD_OUT, FIRST_EPOCHS = (5e-4, 1e-3, 2e-3, 4e-3, 8e-3), 287, 8


def look_inside(model, data, first_filters):
    """What the page draws of a trained model, as short numbers."""
    images = data.test_images[:SHOWN]
    maps = attention_maps(model, prepare(images, data))[:, :, :, 0, 1:]  # (depth, B, h, N_p), of the class token
    table = model.pos_embed.detach()[1:]
    filters = model.patch_embed.weight.detach()[:, 0]  # (d, P, P)
    return {
        "images": images[:, 0].tolist(),
        "labels": [data.classes[label] for label in data.test_labels[:SHOWN]],
        "attention": _short(maps),
        "positions": _short(table),
        "filters": _short(filters),
        "first_filters": _short(first_filters[:, 0]),
    }


def _short(x):
    return np.round(x.double().numpy(), 3).tolist()


def seconds_of_block(T, repeats=5):
    """Processor seconds of one block for one image of T tokens, forward and back: the median of several."""
    torch.manual_seed(0)
    block, x = Block(**BLOCK), torch.randn(1, T, BLOCK["d"], requires_grad=True)
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        for _ in range(max(1, 1024 // T)):
            block(x).sum().backward()
        times.append((time.process_time() - start) / max(1, 1024 // T))
    return statistics.median(times[1:])  # the first one warms up


def first_loop(rate, seed):
    """The loop of *A first model, in fifteen lines*: accuracy on the digits that were held out."""
    digits = load_data("digits")
    images, labels = prepare(digits.train_images, digits), digits.train_labels
    torch.manual_seed(seed)
    model = SmallViT(**digits.sizes, **FIRST)
    model.reset_parameters(table_std=0.5)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(FIRST_EPOCHS):
        for batch in torch.randperm(len(images) - HELD_OUT).split(64):
            loss = F.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        answers = model(images[-HELD_OUT:]).argmax(dim=1)
    return round((answers == labels[-HELD_OUT:]).double().mean().item(), 4)


def main():
    torch.set_num_threads(1)  # so that processor seconds are seconds
    machine = pick_machine()
    data = load_data("fashion_mnist")
    torch.manual_seed(0)
    model = SmallViT(**data.sizes, **MODEL)
    first_filters = model.patch_embed.weight.detach().clone()
    history = train(model, data, RECIPE, machine, checkpoint=ROOT / "_build/runs/small_vit.pt", every=20)
    results = {
        "history": history,
        "inside": look_inside(model.eval(), data, first_filters),
        "rates": {str(rate): [first_loop(rate, seed) for seed in range(3)] for rate in RATES},
        "block_seconds": {str(T): round(seconds_of_block(T), 6) for T in LENGTHS},
    }
    path = ROOT / "book/gpu/results/small_vit.json"
    write_result(path, results, machine, data="fashion_mnist", model=MODEL, recipe=RECIPE, block=BLOCK)


if __name__ == "__main__":
    main()
