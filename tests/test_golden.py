"""Our functions against what other libraries computed (recorded by benchmarks/peers.py, with their versions).

Each test is also the conversion between that library's layout and ours.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from solutions.patchify import conv_weight_to_linear, patch_embed_conv, patchify, unpatchify
from solutions.pooling import map_head, mean_then_norm, norm_then_mean
from solutions.positions import decomposed_bias, relative_bias_index, sincos_2d
from solutions.resolution import bilinear_resize_matrix, pi_resize, resize_pos_embed, vit_input_sequence
from solutions.rotary import dinov3_coordinates, rope_2d_axial, rope_2d_mixed
from solutions.small_vit import SmallViT
from solutions.tokens import patch_token_count

GOLDEN = Path(__file__).parent / "golden"
DOUBLE, SINGLE = 1e-9, 2e-6  # what the library computed in


def entries(library, name):
    document = json.loads((GOLDEN / f"{library}.json").read_text())
    found = [entry for entry in document["entries"] if entry["name"] == name]
    assert found, f"{library}.json has no {name}"
    return [
        ({key: _array(value) for key, value in entry["inputs"].items()}, _array(entry["output"])) for entry in found
    ]


def _array(value):
    return np.array(value, dtype=float) if isinstance(value, list) and not _sizes(value) else value


def _sizes(value):
    return all(isinstance(item, int) for item in value)


def grid(inputs):
    return np.divmod(np.arange(inputs["H_p"] * inputs["W_p"]), inputs["W_p"])


def close(ours, theirs, tolerance):
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=0, atol=tolerance)


@pytest.mark.parametrize("library, name", [("torch", "conv2d"), ("timm", "PatchEmbed")])
def test_patch_embedding(library, name):
    for inputs, tokens in entries(library, name):
        close(patch_embed_conv(inputs["img_chw"], inputs["W_conv"], inputs["b"]), tokens, DOUBLE)


@pytest.mark.parametrize("library, name", [("mae", "patchify"), ("vit_pytorch", "patches")])
def test_channels_last_patches(library, name):
    for inputs, patches in entries(library, name):
        img = inputs["img_chw"].transpose(1, 2, 0)
        close(patchify(img, inputs["P"]), patches, DOUBLE if library == "mae" else 1e-6)
        close(unpatchify(patches, *img.shape[:2], inputs["P"]), img, 1e-6)


def test_unfold_is_channels_first():
    for inputs, patches in entries("torch", "unfold"):
        P, C = inputs["P"], 3
        address = np.arange(P * P * C).reshape(C, P, P).transpose(1, 2, 0).ravel()
        close(patchify(inputs["img_chw"].transpose(1, 2, 0), P), patches[:, address], DOUBLE)


def test_conv_weight_in_both_orders():
    """The matrix for unfold's rows is ours with its rows in the other order."""
    inputs, tokens = entries("torch", "conv2d")[0]
    W_conv, img = inputs["W_conv"], inputs["img_chw"].transpose(1, 2, 0)
    close(patchify(img, 4) @ conv_weight_to_linear(W_conv) + inputs["b"], tokens, DOUBLE)


def test_token_counts_of_timm():
    for inputs, count in entries("timm", "token count"):
        assert patch_token_count(inputs["H"], inputs["W"], inputs["P"], n_prefix=0, mode=inputs["mode"]) == count


@pytest.mark.parametrize("library", ["torch", "timm"])
def test_mean_pooling_in_both_orders(library):
    for function, name in ((mean_then_norm, "mean then norm"), (norm_then_mean, "norm then mean")):
        for inputs, pooled in entries(library, name):
            close(function(inputs["X"], inputs["n_prefix"], inputs["gain"], inputs["shift"]), pooled, DOUBLE)


@pytest.mark.parametrize("library, name", [("timm", "AttentionPoolLatent"), ("transformers", "siglip head")])
def test_attention_pooling(library, name):
    for inputs, pooled in entries(library, name):
        params = {key: _array(value) for key, value in inputs["params"].items()}
        close(map_head(inputs["X"], inputs["n_prefix"], params), pooled, DOUBLE)


def test_sincos_of_mae_is_ours_after_its_class_row():
    for inputs, table in entries("mae", "get_2d_sincos_pos_embed"):
        close(table[0], np.zeros(inputs["d"]), 0)
        close(sincos_2d(inputs["H_p"], inputs["W_p"], inputs["d"]), table[1:], DOUBLE)


# Which quarter of our blocks (sin c, cos c, sin r, cos r) stands where.
LAYOUTS = {("transformers", "mae sincos"): (2, 3, 0, 1), ("timm", "build_sincos2d_pos_embed"): (2, 0, 3, 1)}


@pytest.mark.parametrize("library, name", LAYOUTS)
def test_sincos_layouts(library, name):
    for inputs, table in entries(library, name):
        ours = np.split(sincos_2d(inputs["H_p"], inputs["W_p"], inputs["d"]), 4, axis=1)
        close(np.hstack([ours[block] for block in LAYOUTS[library, name]]), table, SINGLE)


@pytest.mark.parametrize("library", ["big_vision", "vit_pytorch"])
def test_the_other_ladder_differs_by_little(library):
    """i / (d/4 - 1) instead of i / (d/4): the same blocks, at most 0.025 apart on 14 by 14 at d = 768."""
    for inputs, table in entries(library, "posemb_sincos_2d"):
        rows = [int(row) for row in inputs["rows"]]
        ours = sincos_2d(inputs["H_p"], inputs["W_p"], inputs["d"])[rows]
        assert 0.02 < np.abs(ours - table).max() < 0.025
        quarter = inputs["d"] // 4
        close(ours[:, ::quarter], table[:, ::quarter], 1e-6)  # the fastest frequency is 1 on both ladders


def test_relative_bias_index():
    for inputs, index in entries("timm", "get_relative_position_index"):
        close(relative_bias_index(inputs["H_p"], inputs["W_p"]), index, 0)
    for inputs, bias in entries("torchvision", "get_relative_position_bias"):
        table, index = inputs["table"], relative_bias_index(inputs["H_p"], inputs["W_p"])
        close(table[index].transpose(2, 0, 1), bias, DOUBLE)  # (N_p, N_p, heads) to (heads, N_p, N_p)


def test_decomposed_bias():
    """SAM adds it to the scores; of its tables the first belongs to the rows."""
    for inputs, scores in entries("segment_anything", "add_decomposed_rel_pos"):
        names = ("q", "rel_pos_h", "rel_pos_w", "H_p", "W_p")
        close(inputs["scores"] + decomposed_bias(*(inputs[name] for name in names)), scores, DOUBLE)


@pytest.mark.parametrize("library, name", [("rope_vit", "axial"), ("timm", "RotaryEmbeddingCat xy")])
def test_axial_rotation_columns_first(library, name):
    for inputs, turned in entries(library, name):
        rows, cols = grid(inputs)
        close(rope_2d_axial(inputs["x"], rows, cols), turned, SINGLE)


def test_axial_rotation_rows_first():
    for inputs, turned in entries("timm", "RotaryEmbeddingCat ij"):
        rows, cols = grid(inputs)
        close(rope_2d_axial(inputs["x"], cols, rows), turned, SINGLE)


@pytest.mark.parametrize("library, name", [("dinov3", "rope"), ("transformers", "dinov3 rope")])
def test_rotation_of_dinov3(library, name):
    """Rows first, half-split pairs, coordinates in [-1, 1] times 2 pi."""
    for inputs, turned in entries(library, name):
        rows, cols = 2 * np.pi * dinov3_coordinates(inputs["H_p"], inputs["W_p"]).T
        half = inputs["x"].shape[-1] // 2
        interleaved = np.arange(2 * half).reshape(2, half).T.ravel()  # [0, 4, 1, 5, 2, 6, 3, 7]
        ours = np.empty_like(inputs["x"])
        ours[..., interleaved] = rope_2d_axial(
            inputs["x"][..., interleaved], cols, rows, n_prefix=inputs.get("n_prefix", 0), base=inputs["base"]
        )
        close(ours, turned, DOUBLE if library == "dinov3" else SINGLE)


def test_coordinates_of_dinov3():
    for inputs, coordinates in entries("transformers", "dinov3 coordinates"):
        close(dinov3_coordinates(inputs["H_p"], inputs["W_p"]), coordinates, SINGLE)


def test_mixed_rotation():
    for inputs, turned in entries("timm", "get_mixed_freqs"):
        close(rope_2d_mixed(inputs["x"], *grid(inputs), *inputs["theta"]), turned, SINGLE)
    for inputs, turned in entries("rope_vit", "mixed"):
        theta_x, theta_y = inputs["theta"]
        for head in range(2):
            ours = rope_2d_mixed(inputs["x"][0, head], *grid(inputs), theta_x[head], theta_y[head])
            close(ours, turned[0, head], SINGLE)


def test_resized_table():
    for inputs, table in entries("torch", "interpolate"):
        close(resize_pos_embed(inputs["P_pos"], 0, tuple(inputs["old_grid"]), tuple(inputs["new_grid"])), table, DOUBLE)
    for inputs, table in entries("timm", "resample_abs_pos_embed"):
        ours = resize_pos_embed(inputs["P_pos"], 1, tuple(inputs["old_grid"]), tuple(inputs["new_grid"]))
        close(ours, table, SINGLE)


def test_resize_matrix():
    for inputs, matrix in entries("torch", "resize matrix"):
        close(bilinear_resize_matrix(inputs["p"], inputs["p_new"]), matrix, DOUBLE)


@pytest.mark.parametrize("library, name", [("timm", "resample_patch_embed"), ("big_vision", "resample_patchemb")])
def test_pi_resize(library, name):
    for inputs, filters in entries(library, name):
        close(pi_resize(inputs["w"], bilinear_resize_matrix(inputs["p"], inputs["p_new"])), filters, 2e-5)


def test_input_sequence():
    for inputs, sequence in entries("timm", "no_embed_class"):
        names = ("patch_tokens", "cls", "registers", "pos_embed")
        close(vit_input_sequence(*(inputs[name] for name in names)), sequence, DOUBLE)


def small_vit_from_timm(weights, **options):
    """timm's weights in a SmallViT: other names, and tokens without their leading axis."""
    sizes = {"image_size": (8, 12), "patch_size": 4, "channels": 3, "classes": 5}
    model = SmallViT(**sizes, d=16, depth=2, n_heads=2, d_ff=24, **options).eval()
    for name, value in weights.items():
        for theirs, ours in (("patch_embed.proj", "patch_embed"), ("attn.", ""), ("mlp.", "")):
            name = name.replace(theirs, ours)
        value = torch.tensor(value, dtype=torch.float32)
        if name in ("cls_token", "pos_embed"):
            value = value[0]
        if name != "pos_embed" or model.positions == "learned":
            model.get_parameter(name).data.copy_(value)
    return model


@pytest.mark.parametrize("positions", ["learned", "sincos", "axial"])
def test_whole_model_in_single_precision(positions):
    ((inputs, outputs),) = entries("timm", "whole models")
    model = small_vit_from_timm(inputs["weights"], positions=positions)
    assert len(list(model.parameters())) == len(inputs["weights"]) - (positions != "learned")
    close(model(torch.tensor(inputs["images"]).float()).detach(), outputs[positions], 1e-5)


def test_every_recorded_entry_is_used():
    text = Path(__file__).read_text()
    for path in GOLDEN.glob("*.json"):
        for entry in json.loads(path.read_text())["entries"]:
            assert f'"{entry["name"]}"' in text, f"{path.name}: {entry['name']}"
