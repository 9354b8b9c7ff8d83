"""Record what other libraries compute on small inputs, for tests/golden/.

It runs in an environment of its own (`make peers`), because torchvision and the newest torch do not go with
the course's. Libraries that are not on the package index are read from checkouts: set PEER_SOURCES to a
folder that holds `mae`, `rope-vit`, `dinov3`, `big_vision` and `segment-anything`; what is not there is left as it was
recorded.
"""

import ast
import importlib.util
import json
import math
import os
import subprocess
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
SOURCES = Path(os.environ.get("PEER_SOURCES", "peer-sources"))


def normal(seed, *shape):
    """Inputs of order 1, rounded so that the files stay small and exact."""
    return np.random.default_rng(seed).normal(size=shape).round(3)


def tensor(array):
    return torch.tensor(np.asarray(array), dtype=torch.float64)


def entry(name, output, **inputs):
    def plain(value):
        if isinstance(value, torch.Tensor):
            value = value.detach().numpy()
        return np.asarray(value).tolist() if not isinstance(value, (str, int, float, dict, tuple)) else value

    inputs = {key: plain(value) for key, value in inputs.items()}
    return {"name": name, "inputs": inputs, "output": plain(output)}


def function_from(path, name, **namespace):
    """One function of a file, without what the file imports."""
    tree = ast.parse(path.read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    exec(compile(ast.Module(found[:1], []), str(path), "exec"), namespace)
    return namespace[name]


def record_torch():
    img, W_conv, b = normal(1, 3, 9, 14), normal(2, 5, 3, 4, 4), normal(3, 5)
    tokens = F.conv2d(tensor(img)[None], tensor(W_conv), tensor(b), stride=4)[0].flatten(1).T
    yield entry("conv2d", tokens, img_chw=img, W_conv=W_conv, b=b)
    yield entry("unfold", F.unfold(tensor(img[:, :8, :12])[None], 4, stride=4)[0].T, img_chw=img[:, :8, :12], P=4)
    for old, new in (((3, 4), (5, 7)), ((5, 4), (3, 2)), ((2, 8), (4, 4))):
        table = normal(4, math.prod(old), 3)
        grid = tensor(table).reshape(1, *old, 3).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, new, mode="bilinear", align_corners=False, antialias=False)
        yield entry("interpolate", grid[0].flatten(1).T, P_pos=table, old_grid=old, new_grid=new)
    for p, p_new in ((3, 5), (4, 2), (2, 2)):
        basis = torch.eye(p * p, dtype=torch.float64).reshape(p * p, 1, p, p)
        columns = F.interpolate(basis, (p_new, p_new), mode="bilinear", align_corners=False).reshape(p * p, -1)
        yield entry("resize matrix", columns.T, p=p, p_new=p_new)
    X, gain, shift = normal(5, 7, 6), normal(6, 6), normal(7, 6)
    norm = partial(F.layer_norm, normalized_shape=(6,), weight=tensor(gain), bias=tensor(shift), eps=1e-6)
    yield entry("mean then norm", norm(tensor(X)[2:].mean(0)), X=X, n_prefix=2, gain=gain, shift=shift)
    yield entry("norm then mean", norm(tensor(X))[2:].mean(0), X=X, n_prefix=2, gain=gain, shift=shift)


def record_timm():
    from timm.layers import AttentionPoolLatent, PatchEmbed, resample_abs_pos_embed, resample_patch_embed
    from timm.layers import pos_embed_sincos as rotary
    from timm.models.swin_transformer import get_relative_position_index
    from timm.models.vision_transformer import VisionTransformer

    img, W_conv, b = normal(1, 3, 12, 20), normal(2, 5, 3, 4, 4), normal(3, 5)
    embed = PatchEmbed(img_size=(12, 20), patch_size=4, in_chans=3, embed_dim=5).double()
    embed.proj.weight.data, embed.proj.bias.data = tensor(W_conv), tensor(b)
    yield entry("PatchEmbed", embed(tensor(img)[None])[0], img_chw=img, W_conv=W_conv, b=b)
    padding = PatchEmbed(img_size=None, patch_size=4, in_chans=3, embed_dim=5, dynamic_img_pad=True)
    cropping = PatchEmbed(img_size=None, patch_size=4, in_chans=3, embed_dim=5, strict_img_size=False)
    for H, W in ((13, 18), (16, 21), (12, 20)):
        for mode, module in (("pad", padding), ("crop", cropping)):
            yield entry("token count", module(torch.zeros(1, 3, H, W)).shape[1], H=H, W=W, P=4, mode=mode)

    table = rotary.build_sincos2d_pos_embed([3, 4], 16, dtype=torch.float64)
    yield entry("build_sincos2d_pos_embed", table, H_p=3, W_p=4, d=16)

    for H_p, W_p in ((2, 3), (4, 2), (3, 3), (1, 5)):
        index = get_relative_position_index(H_p, W_p)
        yield entry("get_relative_position_index", index, H_p=H_p, W_p=W_p)

    x = normal(4, 2, 12, 8)
    for indexing in ("xy", "ij"):
        rope = rotary.RotaryEmbeddingCat(
            8, in_pixels=False, temperature=100.0, feat_shape=[3, 4], grid_indexing=indexing
        )
        turned = rotary.apply_rot_embed_cat(tensor(x), rope.get_embed().double())
        yield entry(f"RotaryEmbeddingCat {indexing}", turned, x=x, H_p=3, W_p=4)
    frequencies = normal(5, 2, 4)
    rows, cols = np.divmod(np.arange(12), 4)
    emb = rotary.get_mixed_freqs(tensor(frequencies), tensor(cols), tensor(rows))
    yield entry("get_mixed_freqs", rotary.apply_rot_embed_cat(tensor(x), emb), x=x, theta=frequencies, H_p=3, W_p=4)

    old, new = (3, 4), (5, 6)
    P_pos = normal(6, 1 + 12, 4)
    resized = resample_abs_pos_embed(
        tensor(P_pos)[None], list(new), list(old), num_prefix_tokens=1, interpolation="bilinear", antialias=False
    )
    yield entry("resample_abs_pos_embed", resized[0], P_pos=P_pos, n_prefix=1, old_grid=old, new_grid=new)
    for p, p_new in ((4, 6), (4, 8), (6, 4)):
        filters = normal(7, 2, 1, p, p)
        smaller = resample_patch_embed(tensor(filters), [p_new, p_new], interpolation="bilinear", antialias=False)
        yield entry("resample_patch_embed", smaller.reshape(2, -1).T, w=filters.reshape(2, -1).T, p=p, p_new=p_new)

    X, gain, shift = normal(8, 7, 8), normal(9, 8), normal(10, 8)
    for name, fc_norm in (("mean then norm", None), ("norm then mean", False)):
        model = (
            VisionTransformer(
                img_size=8,
                patch_size=4,
                embed_dim=8,
                depth=1,
                num_heads=2,
                num_classes=0,
                global_pool="avg",
                fc_norm=fc_norm,
            )
            .double()
            .eval()
        )
        for norm in (model.norm, model.fc_norm):
            if not isinstance(norm, torch.nn.Identity):
                norm.weight.data, norm.bias.data, norm.eps = tensor(gain), tensor(shift), 1e-6
        pooled = model.forward_head(model.norm(tensor(X)[None]), pre_logits=True)[0]
        yield entry(name, pooled, X=X, n_prefix=1, gain=gain, shift=shift)

    yield _attention_pool(AttentionPoolLatent)
    yield _whole_models(VisionTransformer, rotary)

    model = VisionTransformer(
        img_size=(8, 12),
        patch_size=4,
        embed_dim=4,
        depth=1,
        num_heads=2,
        num_classes=0,
        reg_tokens=2,
        no_embed_class=True,
    ).double()
    patches, cls, registers, positions = normal(11, 6, 4), normal(12, 4), normal(13, 2, 4), normal(14, 6, 4)
    model.cls_token.data, model.reg_token.data = tensor(cls)[None, None], tensor(registers)[None]
    model.pos_embed.data = tensor(positions)[None]
    yield entry(
        "no_embed_class",
        model._pos_embed(tensor(patches)[None])[0],
        patch_tokens=patches,
        cls=cls,
        registers=registers,
        pos_embed=np.vstack([np.zeros(4), positions]),
    )


def _whole_models(VisionTransformer, rotary):
    """Logits of whole models with the same weights and three kinds of positions, in float32."""
    from timm.models.eva import Eva

    sizes = {"img_size": (8, 12), "patch_size": 4, "num_classes": 5, "embed_dim": 16, "depth": 2, "num_heads": 2}
    sizes |= {"mlp_ratio": 1.5}
    turning = {"use_abs_pos_emb": False, "use_rot_pos_emb": True, "rope_grid_indexing": "xy", "rope_temperature": 100.0}
    learned = VisionTransformer(**sizes).eval()
    weights = {}
    for seed, (name, parameter) in enumerate(learned.named_parameters(), start=50):
        gain = "norm" in name and name.endswith("weight")
        weights[name] = (normal(seed, *parameter.shape) / 3 + gain).round(3)
    images = normal(49, 2, 3, 8, 12)

    # timm lists sin r, sin c, cos r, cos c; our layout is sin c, cos c, sin r, cos r
    blocks = rotary.build_sincos2d_pos_embed([2, 3], 16, dtype=torch.float64).reshape(6, 4, 4)
    table = blocks[:, [1, 3, 0, 2]].reshape(6, 16).numpy()
    fixed = weights | {"pos_embed": np.concatenate([np.zeros((1, 16)), table])[None]}
    without = {name: value for name, value in weights.items() if name != "pos_embed"}
    axial = Eva(**sizes, **turning, attn_type="rope", global_pool="token").eval()
    outputs = {}
    for name, model, state in (
        ("learned", learned, weights),
        ("sincos", VisionTransformer(**sizes).eval(), fixed),
        ("axial", axial, without),
    ):
        model.load_state_dict({key: torch.tensor(value, dtype=torch.float32) for key, value in state.items()})
        outputs[name] = model(torch.tensor(images, dtype=torch.float32)).detach().tolist()
    listed = {name: value.tolist() for name, value in weights.items()}
    return entry("whole models", outputs, images=images, weights=listed)


def _attention_pool(AttentionPoolLatent):
    d, d_ff, X = 8, 12, normal(20, 7, 8)
    weights = {name: normal(21 + i, d, d) for i, name in enumerate(("W_q", "W_k", "W_v", "W_o"))}
    biases = {
        name: normal(31 + i, d) for i, name in enumerate(("b_q", "b_k", "b_v", "b_o", "ln_gain", "ln_shift", "q"))
    }
    mlp = {"W_1": normal(41, d, d_ff), "b_1": normal(42, d_ff), "W_2": normal(43, d_ff, d), "b_2": normal(44, d)}
    params = weights | biases | mlp
    pool = AttentionPoolLatent(
        d, num_heads=2, mlp_ratio=d_ff / d, norm_layer=partial(torch.nn.LayerNorm, eps=1e-6)
    ).double()
    p = {key: tensor(value) for key, value in params.items()}
    pool.latent.data = p["q"][None, None]
    pool.q.weight.data, pool.q.bias.data = p["W_q"].T, p["b_q"]
    pool.kv.weight.data = torch.cat([p["W_k"], p["W_v"]], 1).T
    pool.kv.bias.data = torch.cat([p["b_k"], p["b_v"]])
    pool.proj.weight.data, pool.proj.bias.data = p["W_o"].T, p["b_o"]
    pool.norm.weight.data, pool.norm.bias.data = p["ln_gain"], p["ln_shift"]
    pool.mlp.fc1.weight.data, pool.mlp.fc1.bias.data = p["W_1"].T, p["b_1"]
    pool.mlp.fc2.weight.data, pool.mlp.fc2.bias.data = p["W_2"].T, p["b_2"]
    listed = {key: value.tolist() for key, value in params.items()} | {"n_heads": 2}
    return entry("AttentionPoolLatent", pool(tensor(X)[None, 1:])[0], X=X, n_prefix=1, params=listed)


def record_torchvision():
    from torchvision.models.swin_transformer import ShiftedWindowAttention

    attention = ShiftedWindowAttention(dim=8, window_size=[2, 3], shift_size=[0, 0], num_heads=4).double()
    table = normal(1, 15, 4)
    attention.relative_position_bias_table.data = tensor(table)
    bias = attention.get_relative_position_bias()[0]
    yield entry("get_relative_position_bias", bias, table=table, H_p=2, W_p=3)


def record_vit_pytorch():
    from vit_pytorch.simple_vit import SimpleViT, posemb_sincos_2d

    yield entry(
        "posemb_sincos_2d",
        posemb_sincos_2d(14, 14, 768, dtype=torch.float64)[[0, 15, 195]],
        H_p=14,
        W_p=14,
        d=768,
        rows=[0, 15, 195],
    )
    img = normal(1, 3, 8, 12)
    model = SimpleViT(image_size=(8, 12), patch_size=4, num_classes=1, dim=4, depth=1, heads=1, mlp_dim=4)
    yield entry("patches", model.to_patch_embedding[0](tensor(img)[None])[0], img_chw=img, P=4)


def record_transformers():
    from transformers import DINOv3ViTConfig, SiglipVisionConfig
    from transformers.models.dinov3_vit.modeling_dinov3_vit import (
        DINOv3ViTRopePositionEmbedding,
        apply_rotary_pos_emb,
        get_patches_center_coordinates,
    )
    from transformers.models.siglip.modeling_siglip import SiglipMultiheadAttentionPoolingHead
    from transformers.models.vit_mae.modeling_vit_mae import build_2d_sinusoidal_position_embedding

    yield entry("mae sincos", build_2d_sinusoidal_position_embedding(3, 4, 16), H_p=3, W_p=4, d=16)
    coordinates = get_patches_center_coordinates(3, 5, dtype=torch.float64, device="cpu")
    yield entry("dinov3 coordinates", coordinates, H_p=3, W_p=5)
    config = DINOv3ViTConfig(hidden_size=16, num_attention_heads=2, patch_size=4, image_size=12)
    cos, sin = DINOv3ViTRopePositionEmbedding(config).eval()(torch.zeros(1, 3, 12, 20, dtype=torch.float64))
    x = normal(2, 1, 2, 17, 8)
    turned = apply_rotary_pos_emb(tensor(x), tensor(x), cos.double(), sin.double())[0]
    yield entry("dinov3 rope", turned, x=x, n_prefix=2, H_p=3, W_p=5, base=config.rope_theta)

    d, d_ff, X = 8, 12, normal(20, 7, 8)
    head = SiglipMultiheadAttentionPoolingHead(
        SiglipVisionConfig(
            hidden_size=d, intermediate_size=d_ff, num_attention_heads=2, hidden_act="gelu", layer_norm_eps=1e-6
        )
    ).double()
    torch.manual_seed(0)
    for parameter in head.parameters():
        parameter.data = torch.randn_like(parameter).round(decimals=3)
    W_q, W_k, W_v = head.attention.in_proj_weight.chunk(3)
    b_q, b_k, b_v = head.attention.in_proj_bias.chunk(3)
    params = {
        "q": head.probe[0, 0],
        "W_q": W_q.T,
        "W_k": W_k.T,
        "W_v": W_v.T,
        "b_q": b_q,
        "b_k": b_k,
        "b_v": b_v,
        "W_o": head.attention.out_proj.weight.T,
        "b_o": head.attention.out_proj.bias,
        "ln_gain": head.layernorm.weight,
        "ln_shift": head.layernorm.bias,
        "W_1": head.mlp.fc1.weight.T,
        "b_1": head.mlp.fc1.bias,
        "W_2": head.mlp.fc2.weight.T,
        "b_2": head.mlp.fc2.bias,
    }
    listed = {key: value.tolist() for key, value in params.items()} | {"n_heads": 2}
    yield entry("siglip head", head(tensor(X)[None, 1:])[0], X=X, n_prefix=1, params=listed)


def record_mae():
    path = SOURCES / "mae"
    np.float = float  # the released code is older than NumPy 1.24
    spec = importlib.util.spec_from_file_location("mae_pos_embed", path / "util" / "pos_embed.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield entry("get_2d_sincos_pos_embed", module.get_2d_sincos_pos_embed(16, 3, cls_token=True), H_p=3, W_p=3, d=16)
    img = normal(1, 3, 8, 8)
    patchify = function_from(path / "models_mae.py", "patchify", torch=torch)
    model = SimpleNamespace(patch_embed=SimpleNamespace(patch_size=(4, 4)))
    yield entry("patchify", patchify(model, tensor(img)[None])[0], img_chw=img, P=4)


def record_rope_vit():
    path = SOURCES / "rope-vit" / "deit" / "models_v2_rope.py"
    take = partial(function_from, path, torch=torch)
    init_t_xy, reshape = take("init_t_xy"), take("reshape_for_broadcast")
    apply = take("apply_rotary_emb", reshape_for_broadcast=reshape, Tuple=tuple)
    axial = take("compute_axial_cis", init_t_xy=init_t_xy)
    x = normal(1, 1, 2, 12, 8)
    turned, _ = apply(torch.tensor(x).float(), torch.tensor(x).float(), axial(8, 4, 3, 100.0))
    yield entry("axial", turned, x=x, H_p=3, W_p=4, base=100.0)
    frequencies = normal(2, 2, 1, 2 * 4)  # (x and y, depth, heads * d_h / 2)
    t_x, t_y = init_t_xy(4, 3)
    cis = take("compute_mixed_cis")(torch.tensor(frequencies).float(), t_x, t_y, 2)[0]
    turned, _ = apply(torch.tensor(x).float(), torch.tensor(x).float(), cis)
    yield entry("mixed", turned, x=x, theta=frequencies[:, 0].reshape(2, 2, 4), H_p=3, W_p=4)


def record_segment_anything():
    path = SOURCES / "segment-anything" / "segment_anything" / "modeling" / "image_encoder.py"
    take = partial(function_from, path, torch=torch, Tuple=tuple)
    add = take("add_decomposed_rel_pos", get_rel_pos=take("get_rel_pos", F=F))
    for heads, H_p, W_p, d_h in ((3, 2, 5, 4), (2, 4, 2, 3)):
        q, scores = normal(1, heads, H_p * W_p, d_h), normal(2, heads, H_p * W_p, H_p * W_p)
        rel_pos_h, rel_pos_w = normal(3, 2 * H_p - 1, d_h), normal(4, 2 * W_p - 1, d_h)
        added = add(*map(tensor, (scores, q, rel_pos_h, rel_pos_w)), (H_p, W_p), (H_p, W_p))
        sizes = {"H_p": H_p, "W_p": W_p}
        tables = {"rel_pos_h": rel_pos_h, "rel_pos_w": rel_pos_w}
        yield entry("add_decomposed_rel_pos", added, scores=scores, q=q, **tables, **sizes)


def record_dinov3():
    path = SOURCES / "dinov3" / "dinov3" / "layers"
    spec = importlib.util.spec_from_file_location("dinov3_rope", path / "rope_position_encoding.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sin, cos = module.RopePositionEmbedding(16, num_heads=2, dtype=torch.float64).eval()(H=3, W=5)
    rotate_half = function_from(path / "attention.py", "rope_rotate_half", torch=torch, Tensor=torch.Tensor)
    apply = function_from(path / "attention.py", "rope_apply", rope_rotate_half=rotate_half, Tensor=torch.Tensor)
    x = normal(2, 15, 8)
    yield entry("rope", apply(tensor(x), sin, cos), x=x, H_p=3, W_p=5, base=100.0)


def record_big_vision():
    path = SOURCES / "big_vision" / "big_vision" / "models"
    posemb = function_from(path / "vit.py", "posemb_sincos_2d", jnp=np)
    yield entry(
        "posemb_sincos_2d",
        posemb(14, 14, 768, dtype=np.float64)[0, [0, 15, 195]],
        H_p=14,
        W_p=14,
        d=768,
        rows=[0, 15, 195],
    )
    import jax
    import tensorflow as tf

    resample = function_from(
        path / "proj" / "flexi" / "vit.py",
        "resample_patchemb",
        np=np,
        tf=tf,
        jax=jax,
        logging=SimpleNamespace(info=lambda *_: None),
    )
    for p, p_new in ((4, 6), (4, 8), (6, 4)):
        kernel = normal(7, p, p, 1, 2)  # (height, width, channels in, filters)
        yield entry(
            "resample_patchemb",
            np.asarray(resample(kernel, (p_new, p_new))).reshape(-1, 2),
            w=kernel.reshape(-1, 2),
            p=p,
            p_new=p_new,
        )


def commit(name):
    folder = SOURCES / name
    return subprocess.check_output(["git", "-C", folder, "log", "-1", "--format=%h %cs"], text=True).strip()


RECORDS = {
    "torch": (record_torch, partial(version, "torch")),
    "timm": (record_timm, partial(version, "timm")),
    "torchvision": (record_torchvision, partial(version, "torchvision")),
    "vit_pytorch": (record_vit_pytorch, partial(version, "vit-pytorch")),
    "transformers": (record_transformers, partial(version, "transformers")),
    "mae": (record_mae, partial(commit, "mae")),
    "rope_vit": (record_rope_vit, partial(commit, "rope-vit")),
    "dinov3": (record_dinov3, partial(commit, "dinov3")),
    "big_vision": (record_big_vision, partial(commit, "big_vision")),
    "segment_anything": (record_segment_anything, partial(commit, "segment-anything")),
}
CHECKOUTS = ("mae", "rope_vit", "dinov3", "big_vision", "segment_anything")


def main():
    failed = 0
    for library, (record, which) in RECORDS.items():
        folder = SOURCES / (library if library == "big_vision" else library.replace("_", "-"))
        if library in CHECKOUTS and not folder.exists():
            print(f"{library}: no checkout at {folder}; left as it was recorded")
            continue
        try:
            entries = list(record())
        except Exception as error:
            print(f"{library}: {type(error).__name__}: {error}", file=sys.stderr)
            failed += 1
            continue
        document = {"library": library, "version": which(), "entries": entries}
        (GOLDEN / f"{library}.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")
        print(f"{library} {document['version']}: {len(entries)} recorded")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
