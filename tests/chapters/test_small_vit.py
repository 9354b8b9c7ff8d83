"""A small ViT: its functions against PyTorch's own, its twins against NumPy, its gradients (timm: test_golden.py)."""

import copy
import functools
import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from autograder.judging.exercise import exercises
from autograder.judging.judge import judge
from autograder.notebooks.solution import exercise_texts
from autograder.sandbox.host import Sandbox
from solutions import small_vit
from solutions.patchify import patch_embed_conv
from solutions.pooling import map_head, mean_then_norm, norm_then_mean
from solutions.positions import factorized_table, sincos_2d
from solutions.resolution import bilinear_resize_matrix, pi_resize, resize_pos_embed, vit_input_sequence
from solutions.rotary import packed_attention_mask, rope_2d_axial, rope_2d_mixed
from solutions.small_vit import (
    POOLINGS,
    POSITIONS,
    SmallViT,
    attention,
    attention_maps,
    axial_angles,
    decay_groups,
    factorized_positions,
    flops,
    grid_coordinates,
    merge_heads,
    mixed_angles,
    resize_filters,
    resize_positions,
    sincos_positions,
    split_heads,
    transformer_block,
    turn,
)

SIZES = {"image_size": (8, 12), "patch_size": 4, "channels": 3, "classes": 5}
SIZES |= {"d": 16, "depth": 2, "n_heads": 2, "d_ff": 24}


def normal(seed, *shape):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def lively(model, seed=0):
    """The model in float64 with parameters of order 1, so that small differences show."""
    generator = torch.Generator().manual_seed(seed)
    model = model.double().eval()
    for name, parameter in model.named_parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 2
        if "norm" in name and name.endswith("weight"):
            parameter.data += 1
    return model


# ---------------------------------------------------------------------------------------- the exercises


def test_heads_of_two_tokens_by_hand():
    x = torch.arange(12.0).reshape(1, 2, 6)
    heads = split_heads(x, 3)
    assert heads.tolist() == [[[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [10, 11]]]]
    assert torch.equal(merge_heads(heads), x)


def test_heads_of_a_slow_loop():
    x, h = normal(1, 2, 5, 12), 4
    heads = split_heads(x, h)
    for b, j, t, i in itertools.product(range(2), range(h), range(5), range(3)):
        assert heads[b, j, t, i] == x[b, t, j * 3 + i]


def test_attention_is_pytorchs_and_finite_for_large_scores():
    q, k, v = (normal(seed, 2, 3, 5, 4) for seed in (1, 2, 3))
    torch.testing.assert_close(attention(q, k, v), F.scaled_dot_product_attention(q, k, v), rtol=0, atol=1e-12)
    large = attention(1000 * q, 1000 * k, v)
    best = (q @ k.transpose(-2, -1)).argmax(dim=-1)  # of each query the whole weight goes to one key
    torch.testing.assert_close(large, torch.take_along_dim(v, best[..., None], dim=2))


def test_block_is_pytorchs_encoder_layer():
    d, d_ff, h = 12, 20, 3
    layer = nn.TransformerEncoderLayer(
        d, h, d_ff, dropout=0, activation="gelu", layer_norm_eps=1e-6, batch_first=True, norm_first=True
    ).double()
    for seed, parameter in enumerate(layer.parameters()):
        parameter.data = normal(seed, *parameter.shape)
    params = {
        "ln1_gain": layer.norm1.weight, "ln1_shift": layer.norm1.bias,
        "W_qkv": layer.self_attn.in_proj_weight.T, "b_qkv": layer.self_attn.in_proj_bias,
        "W_o": layer.self_attn.out_proj.weight.T, "b_o": layer.self_attn.out_proj.bias,
        "ln2_gain": layer.norm2.weight, "ln2_shift": layer.norm2.bias,
        "W_1": layer.linear1.weight.T, "b_1": layer.linear1.bias,
        "W_2": layer.linear2.weight.T, "b_2": layer.linear2.bias,
    }  # fmt: skip
    x = normal(99, 2, 7, d)
    torch.testing.assert_close(transformer_block(x, params, h), layer(x), rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: split_heads(torch.zeros(2, 3, 8), 3), ["n_heads", "3", "8"]),
        (lambda: split_heads(torch.zeros(2, 3, 8), 0), ["n_heads", "0"]),
        (lambda: split_heads(torch.zeros(3, 8), 2), ["x", "(3, 8)"]),
        (lambda: merge_heads(torch.zeros(3, 8, 2)), ["x", "(3, 8, 2)"]),
        (lambda: attention(*(torch.zeros(1, 2, n, 4) for n in (3, 3, 5))), ["(1, 2, 5, 4)"]),
        (lambda: transformer_block(torch.zeros(1, 2, 4), {}, 2), ["params", "W_qkv"]),
        (lambda: decay_groups(nn.Linear(2, 2), -0.1), ["weight_decay", "-0.1"]),
        (lambda: SmallViT(positions="2d"), ["positions", "2d", "axial"]),
        (lambda: SmallViT(pooling="max"), ["pooling", "max", "map"]),
        (lambda: SmallViT(patch_size=32), ["32", "28"]),
        (lambda: SmallViT(d=30), ["30"]),
        (lambda: SmallViT(d=24, n_heads=4, positions="axial"), ["24", "4"]),
    ],
)
def test_errors_name_the_argument_and_its_value(call, words):
    with pytest.raises(ValueError) as error:
        call()
    assert all(word in str(error.value) for word in words), error.value


def test_half_precision_stays_and_nothing_is_changed():
    q, k, v = (normal(seed, 2, 3, 5, 4).float() for seed in (1, 2, 3))
    before = [x.clone() for x in (q, k, v)]
    assert attention(q, k, v).dtype == split_heads(merge_heads(q), 3).dtype == torch.float32
    assert all(torch.equal(x, old) for x, old in zip((q, k, v), before, strict=True))


# -------------------------------------------------------------------------------- twins of NumPy functions


def close(ours, numpys, tolerance=1e-12):
    np.testing.assert_allclose(ours.detach().numpy(), numpys, rtol=0, atol=tolerance)


@pytest.mark.parametrize("grid", [(2, 3), (5, 4), (1, 7)])
def test_tables_of_positions(grid):
    rows, cols = grid_coordinates(grid)
    assert rows.tolist() == np.divmod(np.arange(grid[0] * grid[1]), grid[1])[0].tolist()
    close(sincos_positions(rows, cols, 12), sincos_2d(*grid, 12))
    tables = normal(1, grid[0], 6), normal(2, grid[1], 6)
    assert np.array_equal(factorized_positions(*tables).numpy(), factorized_table(*(t.numpy() for t in tables)))


@pytest.mark.parametrize("n_prefix", [0, 1, 3])
@pytest.mark.parametrize("grid", [(2, 3), (4, 3)])
def test_rotations(grid, n_prefix):
    h, d_h = 2, 8
    T = n_prefix + grid[0] * grid[1]
    x, theta = normal(1, 3, h, T, d_h), normal(2, 2, h, d_h // 2)
    rows, cols = grid_coordinates(grid)
    place = {"rows": rows.numpy(), "cols": cols.numpy(), "n_prefix": n_prefix}

    def turned(angle):
        angle = F.pad(angle, (0, 0, n_prefix, 0))
        return turn(x, angle.cos(), angle.sin())

    close(turned(axial_angles(rows, cols, d_h)), rope_2d_axial(x.numpy(), **place))
    mixed = turned(mixed_angles(rows, cols, theta))
    for head in range(h):
        thetas = {"theta_x": theta[0, head].numpy(), "theta_y": theta[1, head].numpy()}
        close(mixed[:, head], rope_2d_mixed(x[:, head].numpy(), **place, **thetas))
    assert torch.equal(mixed[:, :, :n_prefix], x[:, :, :n_prefix])


@pytest.mark.parametrize("new", [(5, 7), (2, 2), (3, 4), (4, 3)])
def test_resized_table(new):
    table = normal(1, 2 + 12, 5)
    close(resize_positions(table, 2, (3, 4), new), resize_pos_embed(table.numpy(), 2, (3, 4), new))


@pytest.mark.parametrize("P", [3, 4, 6, 8])
def test_resized_filters(P):
    weight = normal(1, 5, 3, 4, 4)
    B = bilinear_resize_matrix(4, P)
    columns = pi_resize(weight.reshape(15, 16).T.numpy(), B)  # one filter of one channel in each column
    close(resize_filters(weight, P), columns.T.reshape(5, 3, P, P), 1e-10)


@pytest.mark.parametrize("registers", [0, 3])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_what_the_first_block_reads(pooling, registers):
    model = lively(SmallViT(**SIZES, positions="learned", pooling=pooling, registers=registers))
    image = normal(1, 1, 3, 9, 14)  # cropped to 2 x 3 patches
    x, _ = model.embed(image)
    W, b = model.patch_embed.weight.detach().numpy(), model.patch_embed.bias.detach().numpy()
    patches = patch_embed_conv(image[0].numpy(), W, b)
    own = model.registers.detach().numpy() if registers else np.zeros((0, 16))
    pos_embed = model.pos_embed.detach().numpy()
    if pooling == "cls":
        expected = vit_input_sequence(patches, model.cls_token[0].detach().numpy(), own, pos_embed)
    else:  # no class token: the rest is the same
        zero = np.zeros(16)
        expected = vit_input_sequence(patches, zero, own, np.vstack([zero, pos_embed]))[1:]
    close(x[0], expected)


def block_params(block):
    return {
        "ln1_gain": block.norm1.weight, "ln1_shift": block.norm1.bias,
        "W_qkv": block.qkv.weight.T, "b_qkv": block.qkv.bias, "W_o": block.proj.weight.T, "b_o": block.proj.bias,
        "ln2_gain": block.norm2.weight, "ln2_shift": block.norm2.bias,
        "W_1": block.fc1.weight.T, "b_1": block.fc1.bias, "W_2": block.fc2.weight.T, "b_2": block.fc2.bias,
    }  # fmt: skip


def test_block_is_the_exercise():
    model = lively(SmallViT(**SIZES))
    x = normal(1, 2, 7, 16)
    for block in model.blocks:
        expected = transformer_block(x, block_params(block), 2)
        torch.testing.assert_close(block(x), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("registers", [0, 2])
def test_poolings(registers):
    x = normal(1, 2, 9 + registers, 16)
    for pooling in POOLINGS:
        model = lively(SmallViT(**SIZES, pooling=pooling, registers=registers))
        gain, shift = model.norm.weight.detach().numpy(), model.norm.bias.detach().numpy()
        n_prefix = registers + (pooling == "cls")
        assert model.n_prefix == n_prefix
        for image, pooled in zip(x.numpy(), model.pool(x), strict=True):
            if pooling == "cls":
                expected = norm_then_mean(image[:1], 0, gain, shift)
            elif pooling == "map":
                normalized = model.norm(torch.from_numpy(image)).detach().numpy()
                expected = map_head(normalized, n_prefix, map_params(model.map_head))
            else:
                function = {"mean_then_norm": mean_then_norm, "norm_then_mean": norm_then_mean}[pooling]
                expected = function(image, n_prefix, gain, shift)
            close(pooled, expected, 1e-10)


def map_params(head):
    W_k, W_v = head.key_value.weight.chunk(2)
    b_k, b_v = head.key_value.bias.chunk(2)
    params = {
        "q": head.query_token[0], "W_q": head.query.weight.T, "b_q": head.query.bias,
        "W_k": W_k.T, "b_k": b_k, "W_v": W_v.T, "b_v": b_v, "W_o": head.proj.weight.T, "b_o": head.proj.bias,
        "ln_gain": head.norm.weight, "ln_shift": head.norm.bias,
        "W_1": head.fc1.weight.T, "b_1": head.fc1.bias, "W_2": head.fc2.weight.T, "b_2": head.fc2.bias,
    }  # fmt: skip
    return {name: value.detach().numpy() for name, value in params.items()} | {"n_heads": head.n_heads}


# -------------------------------------------------------------------------------------- the whole model


@pytest.mark.parametrize("positions, pooling", itertools.product(POSITIONS, POOLINGS))
def test_gradients_reach_all_that_should_learn_and_nothing_else(positions, pooling):
    model = lively(SmallViT(**SIZES, positions=positions, pooling=pooling, registers=2))
    images = normal(1, 3, 3, 8, 12).requires_grad_()
    F.cross_entropy(model(images), torch.tensor([0, 1, 2])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    expected = {"learned": {"pos_embed"}, "factorized": {"row_table", "col_table"}}.get(positions, set())
    expected = {"blocks.0.pos_theta", "blocks.1.pos_theta"} if positions == "mixed" else expected
    tables = {name for name, _ in model.named_parameters() if "pos" in name or "table" in name}
    assert tables == expected  # what is fixed is no parameter
    assert not model.places.requires_grad
    assert "places" not in model.state_dict()


def test_gradients_keep_to_their_image():
    model = lively(SmallViT(**SIZES, positions="axial", registers=2))
    images = normal(1, 3, 3, 8, 12).requires_grad_()
    model(images)[1].sum().backward()
    assert images.grad[1].abs().sum() > 0
    assert images.grad[[0, 2]].abs().sum() == 0


def test_a_class_token_and_registers_do_not_pool():
    """Where the patches are averaged, the last block's output for a register reaches nothing."""
    model = lively(SmallViT(**SIZES, pooling="norm_then_mean", registers=2))
    x = normal(1, 2, 8, 16).requires_grad_()
    model.pool(x).sum().backward()
    assert x.grad[:, :2].abs().sum() == 0
    assert (x.grad[:, 2:].abs().sum(dim=-1) > 0).all()


@pytest.mark.parametrize("positions", POSITIONS)
def test_one_batch_can_be_overfitted(positions):
    torch.manual_seed(0)
    model = SmallViT(**(SIZES | {"d": 32}), positions=positions)
    images, labels = torch.randn(10, 3, 8, 12), torch.arange(10) % 5
    optimizer = torch.optim.AdamW(decay_groups(model, 0.0), lr=3e-3)
    for _ in range(100):
        loss = F.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss < 0.02
    assert (model(images).argmax(dim=1) == labels).all()


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("positions, pooling", itertools.product(("learned", "mixed"), POOLINGS))
def test_what_nobody_reads_is_left_out_and_nothing_else(positions, pooling, depth):
    """With a class token the last block works out that one alone: the same answer and the same gradients."""
    sizes = SIZES | {"depth": depth, "positions": positions, "pooling": pooling, "registers": 2}
    short, whole = (lively(SmallViT(**sizes)) for _ in range(2))
    images, labels = normal(1, 3, 3, 8, 12), torch.tensor([0, 1, 2])
    out = short(images)
    expected = whole.head(whole.pool(whole.encode(*whole.embed(images))))
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
    for logits in (out, expected):
        F.cross_entropy(logits, labels).backward()
    for mine, its in zip(short.parameters(), whole.parameters(), strict=True):
        if its.grad is not None:
            torch.testing.assert_close(mine.grad, its.grad, rtol=0, atol=1e-10)
    x, rotations = short.embed(images)
    assert short.blocks[-1](x, rotations[-1], keep=1).shape == (3, 1, 16)


@pytest.mark.parametrize("keep, dtype", [(None, torch.float64), (1, torch.float64), (1, torch.bfloat16)])
def test_a_block_and_one_query_are_pytorchs_attention(keep, dtype):
    """Keys and values that are never worked out make no difference, also where scores are in the hundreds."""
    block = lively(SmallViT(**SIZES)).blocks[0].to(dtype)
    x = 3 * normal(1, 5, 7, 16).to(dtype)
    y = block.norm1(x)
    expected, _ = F.multi_head_attention_forward(
        *(z.transpose(0, 1).double() for z in (y[:, :keep], y, y)), 16, 2,
        block.qkv.weight.double(), block.qkv.bias.double(), None, None, False, 0.0,
        block.proj.weight.double(), block.proj.bias.double(), need_weights=False,
    )  # fmt: skip
    expected = x[:, :keep] + expected.transpose(0, 1)
    expected = expected + block.double().fc2(F.gelu(block.fc1(block.norm2(expected))))
    found = block.to(dtype)(x, keep=keep).double()
    assert ((found - expected).abs().max() / expected.abs().max()).item() < (1e-12 if dtype == torch.float64 else 0.03)


def test_attention_is_written_out_where_that_is_faster(monkeypatch):
    """Short sequences on a CPU; masks, other lengths and long ones are PyTorch's, and all give its numbers."""
    calls = []
    monkeypatch.setattr(small_vit, "attention", lambda *qkv: calls.append(qkv) or attention(*qkv))
    single, half = torch.float32, torch.bfloat16
    for T, dtype, masked, written_out in (
        (17, single, False, 1), (17, half, False, 1), (17, single, True, 0), (17, torch.float64, False, 0),
        (197, single, False, 0), (197, half, False, 1), (1025, half, False, 0),
    ):  # fmt: skip
        calls.clear()
        q, k, v = (normal(seed, 1, 2, T, 4).to(dtype) for seed in (1, 2, 3))
        mask = torch.ones(T, T, dtype=torch.bool).tril() if masked else None
        close = {"rtol": 0, "atol": 0.02 if dtype == half else 1e-5}
        expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        torch.testing.assert_close(small_vit.attend(q, k, v, mask), expected, **close)
        assert len(calls) == written_out
        expected = F.scaled_dot_product_attention(q[:, :, :1], k, v)
        torch.testing.assert_close(small_vit.attend(q[:, :, :1], k, v), expected, **close)


@pytest.mark.parametrize("positions", POSITIONS)
def test_order_of_the_patches(positions):
    """Without positions the mean of the patches does not see their order; with any it does."""
    model = lively(SmallViT(**SIZES, positions=positions, pooling="norm_then_mean"))
    images = normal(1, 2, 3, 8, 12)
    swapped = torch.cat([images[..., 4:8], images[..., :4], images[..., 8:]], dim=-1)
    difference = (model(images) - model(swapped)).abs().max()
    assert difference < 1e-12 if positions == "none" else difference > 1e-3


@pytest.mark.parametrize("positions", POSITIONS)
def test_other_grids_and_coordinates(positions):
    model = lively(SmallViT(**SIZES, positions=positions))
    outputs = {}
    for model.coordinates in ("absolute", "relative"):
        same, larger = model(normal(1, 2, 3, 8, 12)), model(normal(2, 2, 3, 16, 20))
        outputs[model.coordinates] = same, larger
        assert larger.shape == (2, 5)
    (same, larger), (same_again, stretched) = outputs.values()
    assert torch.equal(same, same_again)  # on the grid of training both count alike
    assert torch.equal(larger, stretched) == (positions in ("none", "learned", "factorized"))


def test_stretched_coordinates_are_those_of_a_resized_table():
    """A table that is linear in the row and the column is resized to the stretched coordinates."""
    old, new = (4, 6), (8, 9)
    linear = grid_coordinates(old).T  # (N_p, 2): its own coordinates
    resized = resize_positions(linear, 0, old, new)
    stretched = grid_coordinates(new, old).T
    inside = (stretched >= 0).all(dim=1) & (stretched <= torch.tensor([3, 5])).all(dim=1)  # elsewhere it is clamped
    assert inside.sum() > 30
    torch.testing.assert_close(resized[inside], stretched[inside], rtol=0, atol=1e-12)


def test_other_patch_sizes_keep_the_tokens():
    """An enlarged picture, cut into enlarged patches, gives the same tokens where PI-resize is exact."""
    model = lively(SmallViT(**SIZES, positions="none"))
    image = normal(1, 1, 3, 8, 12)
    patches = image.unfold(2, 4, 4).unfold(3, 4, 4)  # (1, 3, 2, 3, 4, 4)
    B = torch.from_numpy(bilinear_resize_matrix(4, 6))
    enlarged = (patches.flatten(-2) @ B.T).unflatten(-1, (6, 6)).transpose(3, 4).reshape(1, 3, 12, 18)
    torch.testing.assert_close(model(enlarged, patch_size=6), model(image), rtol=0, atol=1e-9)


@pytest.mark.parametrize("positions", ["learned", "axial", "mixed"])
def test_packed_images_are_those_one_by_one(positions):
    """Two images in one sequence with a block mask, each with its own positions."""
    model = lively(SmallViT(**SIZES, positions=positions))
    images = normal(1, 1, 3, 8, 12), normal(2, 1, 3, 12, 16)
    parts = [model.embed(image) for image in images]
    lengths = [x.shape[1] for x, _ in parts]
    x = torch.cat([x for x, _ in parts], dim=1)
    rotations = [
        pair[0] and tuple(torch.cat(both, dim=-2) for both in zip(*pair, strict=True))
        for pair in zip(*(rotations for _, rotations in parts), strict=True)
    ]
    packed = model.encode(x, rotations, torch.from_numpy(packed_attention_mask(lengths)))
    for image, output in zip(images, packed.split(lengths, dim=1), strict=True):
        alone = model.encode(*model.embed(image))
        torch.testing.assert_close(output, alone, rtol=0, atol=1e-10)


def test_attention_maps_are_what_the_blocks_use():
    model = lively(SmallViT(**SIZES, positions="axial", registers=1))
    images = normal(1, 2, 3, 8, 12)
    maps = attention_maps(model, images)
    assert maps.shape == (2, 2, 2, 8, 8)
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones(2, 2, 2, 8, dtype=torch.float64))
    x, rotations = model.embed(images)
    block = model.blocks[0]
    _, _, v = block.heads(x, rotations[0])
    y = x + block.proj(merge_heads(maps[0] @ v))
    expected = y + block.fc2(F.gelu(block.fc1(block.norm2(y))))
    torch.testing.assert_close(block(x, rotations[0]), expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_operations_as_a_counter_counts_them(positions, pooling):
    model = SmallViT(**SIZES, positions=positions, pooling=pooling, registers=2).eval()
    for size in ((8, 12), (16, 20)):
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            model(torch.zeros(1, 3, *size))
        assert flops(model, (size[0] // 4, size[1] // 4))["total"] == counter.get_total_flops()


def test_parameters_of_vit_b_16():
    """As many as ViT-B/16 is known to have."""
    sizes = {"image_size": (224, 224), "patch_size": 16, "channels": 3, "classes": 1000}
    with torch.device("meta"):
        sizes |= {"d": 768, "depth": 12, "n_heads": 12, "d_ff": 3072, "positions": "learned"}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SmallViT, "reset_parameters", lambda self: None)
            model = SmallViT(**sizes)
    assert sum(parameter.numel() for parameter in model.parameters()) == 86_567_656


@pytest.mark.parametrize("positions", POSITIONS)
def test_first_weights_keep_the_variance(positions):
    torch.manual_seed(0)
    model = SmallViT(**SIZES | {"d": 128, "d_ff": 512}, positions=positions, registers=8, pooling="cls")
    model.reset_parameters(table_std=0.5)
    for name, module in model.named_modules():
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            assert not module.bias.any()
            expected = 0.02 if name == "head" else module.weight[0].numel() ** -0.5
            assert 0.9 < module.weight.std() / expected < 1.1, name
    tables = [p for name, p in model.named_parameters() if name in ("pos_embed", "row_table", "col_table")]
    assert all(0.8 < table.std() / 0.5 < 1.2 for table in tables)
    assert 0.9 < model.registers.std() / 0.02 < 1.1
    assert 0.7 < model.cls_token.std() / 0.02 < 1.3


# ------------------------------------------------------------------------------------------- decay groups


@pytest.mark.parametrize("positions, pooling", itertools.product(POSITIONS, POOLINGS))
def test_decay_groups_of_the_model(positions, pooling):
    model = SmallViT(**SIZES, positions=positions, pooling=pooling, registers=2)
    before = copy.deepcopy(model.state_dict())
    decaying, others = decay_groups(model, 0.05)
    assert (decaying["weight_decay"], others["weight_decay"]) == (0.05, 0.0)
    matrices = [m.weight for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
    assert {id(p) for p in decaying["params"]} == {id(p) for p in matrices}
    both = decaying["params"] + others["params"]
    assert len(both) == len({id(p) for p in both}) == len(list(model.parameters()))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    torch.optim.AdamW([decaying, others])


def test_decay_groups_of_pytorchs_own_attention():
    """Its matrix is a parameter of its own, called `in_proj_weight`."""
    layer = nn.TransformerEncoderLayer(8, 2, 16)
    decaying, others = decay_groups(layer, 0.1)
    names = {id(parameter): name for name, parameter in layer.named_parameters()}
    matrices = {"self_attn.in_proj_weight", "self_attn.out_proj.weight", "linear1.weight", "linear2.weight"}
    assert {names[id(p)] for p in decaying["params"]} == matrices
    assert len(others["params"]) == 8


def test_solutions_in_a_sandbox():
    """Tensors, dictionaries of them and a whole module cross; the mistakes are named as in this process."""
    imports = "import torch\nimport torch.nn.functional as F\nfrom torch import nn"
    cells = [imports, *(text.solution for text in exercise_texts("small_vit").values())]
    cells.append(cells[-1].replace("def decay_groups", "def by_axes").replace("1 and not table", "1"))
    found = exercises("small_vit")
    names = [exercise.name for exercise in found]
    box = Sandbox(("numpy", "torch"), memory_mb=2048, time_limit=60)
    with box, box.session(cells, [*names, "by_axes"]) as session:
        for exercise in found:
            verdict = judge(exercise, functools.partial(session.call, exercise.name), hidden=True)
            assert verdict.passed, verdict.failures
        verdict = judge(found[-1], functools.partial(session.call, "by_axes"), hidden=True)
    assert {failure.misconception for failure in verdict.failures} == {"by the number of axes alone"}
