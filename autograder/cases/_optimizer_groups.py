"""How `decay_groups` is called and what its answer says; this text runs beside the learner's code (see `Adapted`)."""

import numpy as np
import torch


def argument(layers):
    """The module of layers and parameters by name: `{"blocks.0.fc": ("Linear", 8, 3), "cls": ("Parameter", 1, 8)}`.

    Each is a class of `torch.nn` and its sizes.
    """
    root = torch.nn.Module()
    for path, (kind, *sizes) in layers.items():
        *parents, name = path.split(".")
        owner = root
        for parent in parents:
            if not hasattr(owner, parent):
                owner.add_module(parent, torch.nn.Module())
            owner = getattr(owner, parent)
        make = getattr(torch.nn, kind)
        setattr(owner, name, make(torch.zeros(sizes)) if kind == "Parameter" else make(*sizes))
    return root


def answer(groups, module, odd):
    """The weight decay of each parameter, in the order of `named_parameters`, or what is `odd` about the groups."""
    if isinstance(groups, (int, float)) or hasattr(groups, "shape"):
        return odd(f"an array of shape {tuple(np.shape(groups))}")
    if not isinstance(groups, (list, tuple)):
        return groups
    if len(groups) != 2:
        return odd(f"a {type(groups).__name__} of {len(groups)}")
    for group in groups:
        if not isinstance(group, dict):
            return odd(f"a {type(groups).__name__} with {_article(type(group).__name__)} where a dictionary should be")
        for key in ("params", "weight_decay"):
            if key not in group:
                return odd(f"a group without the key {key!r}")
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    decays = {name: [] for name in names.values()}
    for group in groups:
        for parameter in group["params"]:
            if id(parameter) not in names:
                return odd(f"a group with {_article(type(parameter).__name__)} that is no parameter of the module")
            decays[names[id(parameter)]].append(float(group["weight_decay"]))
    for name, found in decays.items():
        if len(found) != 1:
            return odd(f"groups that {'leave out' if not found else 'hold more than once'} {name}")
    return [found[0] for found in decays.values()]


def _article(noun):
    return f"an {noun}" if noun[:1] in "aeiouAEIOU" else f"a {noun}"
