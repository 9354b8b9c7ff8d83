"""How images are changed while a model trains, and where the randomness of each run comes from.

Every random choice follows from the seed and the number of the epoch or step.
"""

import numpy as np
import torch
import torch.nn.functional as F


def generator_for(*numbers):
    """A random generator that depends on these numbers alone."""
    state = np.random.SeedSequence([len(numbers), *numbers]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state >> np.uint64(1)))


def augment(images, shift, flip, generator):
    """Move and mirror every image of a batch by a chance of its own.

    Parameters
    ----------
    images : tensor, shape (B, C, H, W)
    shift : int
        Up to so many pixels in both directions; what comes in is 0.
    flip : bool
        Mirror every other one from left to right.
    generator : torch.Generator
        On the CPU, so that all devices draw the same.

    Returns
    -------
    tensor, shape (B, C, H, W)
    """
    B, _, H, W = images.shape
    down, right = torch.randint(2 * shift + 1, (2, B, 1), generator=generator)
    mirrored = torch.rand(B, 1, generator=generator) < (0.5 if flip else 0)
    if not shift and not flip:
        return images  # after the draws, so that what is drawn next stays the same
    rows = down + torch.arange(H)  # (B, H) into the padded image
    cols = right + torch.where(mirrored, torch.arange(W - 1, -1, -1), torch.arange(W))
    rows, cols = rows.to(images.device), cols.to(images.device)
    batch = torch.arange(B, device=images.device)[:, None, None]
    padded = F.pad(images, (shift, shift, shift, shift))
    moved = padded[batch, :, rows[:, :, None], cols[:, None, :]]  # (B, H, W, C)
    return moved.permute(0, 3, 1, 2)


def warp(images, strength, generator):
    """Turn, stretch and slant every image of a batch by a chance of its own.

    Parameters
    ----------
    images : tensor of float, shape (B, C, H, W)
        Of mean 0: what comes in from outside is 0.
    strength : float
        Up to so many radians, and up to this share of the side.
    generator : torch.Generator

    Returns
    -------
    tensor, shape (B, C, H, W)
    """
    angle, wide, high, slant = strength * (2 * torch.rand(4, len(images), generator=generator) - 1)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros_like(angle)
    # Where each pixel is taken from: turned, after it was stretched and slanted
    across = torch.stack([cos * (1 + wide), cos * slant - sin * (1 + high), zero], dim=1)
    down = torch.stack([sin * (1 + wide), sin * slant + cos * (1 + high), zero], dim=1)
    taken = torch.stack([across, down], dim=1).to(images.device)  # (B, 2, 3)
    places = F.affine_grid(taken, images.shape, align_corners=False)
    return F.grid_sample(images, places, align_corners=False)


def recolour(images, strength, generator):
    """Change brightness, contrast and saturation of every image of a batch by a chance of its own.

    Parameters
    ----------
    images : tensor of float, shape (B, C, H, W)
        Of mean 0 and spread 1.
    strength : float
        Up to this share; of a spread, for brightness.
    generator : torch.Generator

    Returns
    -------
    tensor, shape (B, C, H, W)
    """
    changes = strength * (2 * torch.rand(3, len(images), 1, 1, 1, generator=generator) - 1)
    brighter, contrast, saturation = changes.to(images.device)
    grey, mean = images.mean(dim=1, keepdim=True), images.mean(dim=(1, 2, 3), keepdim=True)
    images = grey + (1 + saturation) * (images - grey)
    return mean + (1 + contrast) * (images - mean) + brighter


def erase(images, side, generator):
    """Set a square, somewhere in each image of a batch, to 0: the mean.

    Parameters
    ----------
    images : tensor of float, shape (B, C, H, W)
    side : int
    generator : torch.Generator

    Returns
    -------
    tensor, shape (B, C, H, W)
    """
    B, _, H, W = images.shape
    top, left = (torch.randint(1 - side, n, (B, 1), generator=generator) for n in (H, W))
    rows, cols = ((torch.arange(n) >= at) & (torch.arange(n) < at + side) for n, at in ((H, top), (W, left)))
    square = rows[:, None, :, None] & cols[:, None, None, :]  # (B, 1, H, W)
    return images.masked_fill(square.to(images.device), 0)


def cutmix(images, generator):
    """Paste a rectangle of one image into another, the same rectangle for a whole batch.

    Parameters
    ----------
    images : tensor, shape (B, C, H, W)
    generator : torch.Generator

    Returns
    -------
    images : tensor, shape (B, C, H, W)
    others : tensor of int64, shape (B,)
        The images that the rectangles come from.
    share : float
        Of the rectangle's area in the whole.
    """
    B, _, H, W = images.shape
    others = torch.randperm(B, generator=generator).to(images.device)
    side = torch.rand((), generator=generator).sqrt().item()  # so that all areas are as frequent
    top, left = (torch.randint(n, (), generator=generator).item() for n in (H, W))  # the rectangle's middle
    rows, cols = (
        slice(max(0, round(at - side * n / 2)), min(n, round(at + side * n / 2))) for n, at in ((H, top), (W, left))
    )
    mixed = images.clone()
    mixed[:, :, rows, cols] = images[others][:, :, rows, cols]
    return mixed, others, (rows.stop - rows.start) * (cols.stop - cols.start) / (H * W)
