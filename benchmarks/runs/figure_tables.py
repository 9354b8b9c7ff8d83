"""Train two small ViTs and keep what the book's interactive figures show of them: book/widgets/trained.js.

    python benchmarks/runs/figure_tables.py

Fashion-MNIST, enlarged to 56 by 56 pixels and cut into patches of side 8, so that one model gives filters that can
be resized and a position table of 7 by 7. About ten minutes on one core.
"""

import base64
from pathlib import Path

import numpy as np
import torch

from book.gpu.data import load_data, prepare
from book.gpu.training import Recipe, train
from solutions.resolution import bilinear_resize_matrix
from solutions.small_vit import SmallViT

TARGET = Path(__file__).parents[2] / "book" / "widgets" / "trained.js"
SIDE, P, WIDTH = 56, 8, 64
RECIPE = Recipe(epochs=2, image_size=SIDE, shift=1)
FILTERS = 12
PICTURE = 0  # of the test images: an ankle boot


def trained(positions, data):
    """A model of two blocks and its share of right answers on the test images."""
    torch.manual_seed(0)
    sizes = data.sizes | {"image_size": (SIDE, SIDE)}
    pooling = {"positions": positions, "pooling": "mean_then_norm"}
    model = SmallViT(**sizes, patch_size=P, d=WIDTH, depth=2, **pooling)
    with torch.no_grad():  # start small: then what is seen is what was learned
        for name, parameter in model.named_parameters():
            if name in ("patch_embed.weight", "pos_embed", "row_table", "col_table"):
                parameter *= 0.02
    history = train(model, data, RECIPE)
    return model, history[-1]["accuracy"]


def as_bytes(array):
    """The text of a JavaScript object: shape, scale and base64 of numbers from -127 to 127."""
    array = array.detach().numpy().astype(float)
    scale = np.abs(array).max() / 127
    whole = np.round(array / scale).astype(np.int8)
    text = base64.b64encode(whole.tobytes()).decode()
    return f'{{ shape: {list(array.shape)}, scale: {scale:.6g}, data: "{text}" }}'


def text_of(data, learned, accuracy, factorized, other_accuracy):
    """The module's text: both models' tables and one test image."""
    filters = learned.patch_embed.weight[:, 0].flatten(1)  # (d, P * P)
    smooth = torch.from_numpy(bilinear_resize_matrix(P // 2, P)).float()  # nearly all that these images hold
    strongest = (filters @ smooth).norm(dim=1).argsort(descending=True)[:FILTERS]
    image = data.test_images[PICTURE : PICTURE + 1]
    mean, std = prepare(image * 0, data, None).flatten()[0], 1 / data.std.item()
    pixels = base64.b64encode(image.numpy().tobytes()).decode()
    return f"""// From benchmarks/runs/figure_tables.py. A table is base64 of bytes from -127 to 127, times `scale`.
// Two small ViTs of two blocks, P = {P}, d = {WIDTH}, {RECIPE.epochs} epochs on Fashion-MNIST (MIT licence),
// {SIDE} by {SIDE} pixels. Right of the test images: {accuracy:.1%} (learned table), {other_accuracy:.1%} (factorized).

/** The {FILTERS} filters that answer most strongly to smooth patches, flattened in reading order. */
export const filters = {as_bytes(filters[strongest])};

/** A learned table of 7 by 7 patches. */
export const learned = {as_bytes(learned.pos_embed)};

/** A factorized table: a vector for each row and each column. */
export const rows = {as_bytes(factorized.row_table)};
export const columns = {as_bytes(factorized.col_table)};

/** A test image of 28 by 28 pixels, from 0 to 255; the model reads gain * pixel + shift. */
export const picture = {{ gain: {std:.6g}, shift: {mean:.6g}, data: "{pixels}" }};

/** The numbers of one of these tables, row by row. */
export function numbers({{ scale, data }}) {{
  return Float64Array.from(atob(data), (letter) => ((letter.charCodeAt(0) << 24) >> 24) * scale);
}}
"""


def main():
    torch.set_num_threads(1)
    data = load_data("fashion_mnist")
    models = *trained("learned", data), *trained("factorized", data)
    TARGET.write_text(text_of(data, *models), encoding="utf-8")


if __name__ == "__main__":
    main()
