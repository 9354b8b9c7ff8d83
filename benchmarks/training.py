"""Images per second beside timm and vit-pytorch, and the time to 85 % on Fashion-MNIST beside a plain timm recipe.

    make peers          # once: the environment that has the peers
    PYTHONPATH=. _build/peers/bin/python benchmarks/training.py

takes five minutes on two quiet cores, and writes results/training.json. Models take turns, step by step, and a
figure is the median over the turns. On a CPU seconds are those of the processors, divided by the number of threads: so
what else the machine does counts little. On a busy machine set OMP_NUM_THREADS=1, where no thread waits for another.
"""

import statistics
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

from solutions.small_vit import SmallViT
from solutions.training import QUICK, Machine, evaluate, load_data, pick_machine, prepare, train, write_result

try:
    from timm.models.vision_transformer import VisionTransformer
    from vit_pytorch import ViT
except ImportError as error:
    sys.exit(
        f"{error}: this needs the environment of `make peers`. Then: _build/peers/bin/python benchmarks/training.py"
    )

RESULT = Path(__file__).parent / "results" / "training.json"
TARGET = 0.85

# Class token and learned positions, as the peers have them by default; the batch on a CPU and on a GPU
SMALL = {"image_size": 28, "patch_size": 7, "channels": 1, "classes": 10, "d": 64, "depth": 3, "n_heads": 4}
TINY = {"image_size": 224, "patch_size": 16, "channels": 3, "classes": 1000, "d": 192, "depth": 12, "n_heads": 3}
CONFIGURATIONS = {
    "small": (SMALL | {"d_ff": 128}, {"cpu": 256, "cuda": 4096}),
    "ViT-Ti/16": (TINY | {"d_ff": 768}, {"cpu": 8, "cuda": 256}),
}


def timm_model(image_size, patch_size, channels, classes, d, depth, n_heads, d_ff):
    """timm's model of that size."""
    sizes = {"img_size": image_size, "patch_size": patch_size, "in_chans": channels, "num_classes": classes}
    return VisionTransformer(**sizes, embed_dim=d, depth=depth, num_heads=n_heads, mlp_ratio=d_ff / d)


def vit_pytorch_model(image_size, patch_size, channels, classes, d, depth, n_heads, d_ff):
    """vit-pytorch's: without biases in attention, with two norms more at the patches."""
    sizes = {"image_size": image_size, "patch_size": patch_size, "channels": channels, "num_classes": classes}
    return ViT(**sizes, dim=d, depth=depth, heads=n_heads, dim_head=d // n_heads, mlp_dim=d_ff)


def our_model(image_size, **sizes):
    return SmallViT((image_size, image_size), **sizes, positions="learned")


MODELS = {"ours": our_model, "timm": timm_model, "vit-pytorch": vit_pytorch_model}


def training_step(model, images, labels, machine):
    """A function that takes one step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    model.train()

    def step():
        with machine.autocast():
            logits = model(images)
        loss = F.cross_entropy(logits.float(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def inference_step(model, images, labels, machine):
    model.eval()

    def step():
        with torch.inference_mode(), machine.autocast():
            model(images)

    return step


def clock(device):
    """Seconds so far, see above."""
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time() / torch.get_num_threads()


def seconds_of(step, device):
    start = clock(device)
    step()
    return clock(device) - start


def throughput(machine, compiled, seconds=20.0):
    """Images per second of every model, for each size, in training and inference.

    Parameters
    ----------
    machine : Machine
    compiled : bool
        Compile the models.
    seconds : float
        For each row, after the warming up.

    Returns
    -------
    list of dict
    """
    rows = []
    for name, (sizes, batches) in CONFIGURATIONS.items():
        batch, side = batches[machine.device], sizes["image_size"]
        images = torch.randn(batch, sizes["channels"], side, side, device=machine.device)
        labels = torch.randint(sizes["classes"], (batch,), device=machine.device)
        for mode, make in {"training": training_step, "inference": inference_step}.items():
            steps = {}
            for library, model_of in MODELS.items():
                torch.manual_seed(0)
                model = model_of(**sizes).to(machine.device)
                steps[library] = make(torch.compile(model) if compiled else model, images, labels, machine)
            for step in steps.values():
                for _ in range(2):
                    step()
            taken, end = {library: [] for library in steps}, time.perf_counter() + seconds
            while time.perf_counter() < end or len(taken["ours"]) < 5:
                for library, step in steps.items():
                    taken[library].append(seconds_of(step, machine.device))
            rate = {library: round(batch / statistics.median(times), 2) for library, times in taken.items()}
            row = {"model": name, "device": machine.device, "compiled": compiled, "batch": batch, "mode": mode}
            rows.append(row | {"images_per_second": rate})
            ahead = rate["ours"] / max(rate["timm"], rate["vit-pytorch"])
            words = "  ".join(f"{library} {value:,.1f}" for library, value in rate.items())
            print(
                f"{name:<10}{machine.device}{' compiled' * compiled:<10}{mode:<10} {words}  ({ahead:.2f})", flush=True
            )
    return rows


# ------------------------------------------------------------------------------------------ time to 85 %


def our_run(data, machine, seed):
    """The course's recipe: the accuracy."""
    torch.manual_seed(seed)
    model = SmallViT(**data.sizes, **QUICK["model"])
    model.reset_parameters(QUICK["table_std"])
    history = train(model, data, QUICK["recipe"], machine, progress=False)
    return history[-1]["accuracy"]


def timm_run(data, machine, epochs, learning_rate):
    """A plain recipe: timm's model as it comes, AdamW, half a cosine."""
    torch.manual_seed(0)
    sizes = {key: value for key, value in QUICK["model"].items() if key != "positions"}
    model = timm_model(28, channels=1, classes=10, **sizes).to(machine.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=0.05, fused=True)
    n, B = len(data.train_images), QUICK["recipe"].batch_size
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * (n // B))
    for _ in range(epochs):
        for batch in torch.randperm(n).to(machine.device)[: n // B * B].split(B):
            with machine.autocast():
                logits = model(prepare(data.train_images[batch], data))
            loss = F.cross_entropy(logits.float(), data.train_labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return evaluate(model.eval(), data, machine)


def time_to_target(machine):
    """The shortest run of each that ends above the target.

    Returns
    -------
    list of dict
        Every run that was tried.
    """
    data = load_data("fashion_mnist").to(machine.device)
    runs = []

    def note(recipe, epochs, run, *arguments):
        start = clock(machine.device)
        accuracy = run(data, machine, *arguments)
        seconds = round(clock(machine.device) - start, 1)
        runs.append({"recipe": recipe, "epochs": epochs, "seconds": seconds, "accuracy": accuracy})
        print(f"{recipe}, epochs {epochs}: {seconds} s, {accuracy:.2%}", flush=True)
        return runs[-1]

    best = float("inf")
    for seed, learning_rate in enumerate((3e-3, 1e-3)):
        note(f"ours, seed {seed}", QUICK["recipe"].epochs, our_run, seed)
        for epochs in range(1, 6):
            run = note(f"timm, learning rate {learning_rate:g}", epochs, timm_run, epochs, learning_rate)
            if run["accuracy"] >= TARGET:
                best = min(best, run["seconds"])
            if run["seconds"] >= best:  # a longer run of this rate cannot be the shortest
                break
    return runs


def main():
    machine = pick_machine()
    print(f"{machine.name}, {machine.precision}, {torch.get_num_threads()} threads, torch {torch.__version__}")
    cpu = Machine("cpu", "float32", False, "CPU")
    rows = throughput(cpu, compiled=False)
    if machine.device == "cuda":
        rows += throughput(machine, compiled=False) + throughput(machine, compiled=True)
    runs = time_to_target(cpu)
    ours = max(run["seconds"] for run in runs if run["recipe"].startswith("ours"))
    theirs = [run["seconds"] for run in runs if run["recipe"].startswith("timm") and run["accuracy"] >= TARGET]
    reached = all(run["accuracy"] >= TARGET for run in runs if run["recipe"].startswith("ours"))
    print(f"time to {TARGET:.0%}: ours {ours:.1f} s, timm {min(theirs, default=float('inf')):.1f} s")
    results = {"throughput": rows, "time_to_target": runs}
    write_result(RESULT, results, machine, threads=torch.get_num_threads(), **QUICK)
    rates = [row["images_per_second"] for row in rows]
    fast = all(rate["ours"] >= max(rate.values()) for rate in rates)
    return 0 if fast and reached and 2 * ours <= min(theirs, default=float("inf")) else 1


if __name__ == "__main__":
    sys.exit(main())
