"""The complete run: load, train, checkpoint, restore in a fresh process, infer, and measure.

It needs nothing but Python 3.9. A small network (two inputs, one hidden layer, two classes) learns
to tell two spirals apart by plain gradient descent. What counts is not the model but that each step
of a training pipeline works here, and how long it takes.
"""

import csv
import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path

STEPS = int(os.environ.get("SLIPWAY_PARAM_STEPS", "3000"))
HIDDEN = int(os.environ.get("SLIPWAY_PARAM_HIDDEN", "24"))
SEED = int(os.environ.get("SLIPWAY_PARAM_SEED", "7"))
BATCH, RATE, EVERY, BURST = 32, 0.5, 500, 1000
FOLDER = Path(os.environ.get("SLIPWAY_CHECKPOINT_DIR", "checkpoints"))


def load(path):
    """Return the rows as (features, label)."""
    with open(path, newline="") as file:
        rows = [((float(x), float(y)), int(label)) for x, y, label in csv.reader(file)]
    return [(expand(x, y), label) for (x, y), label in rows]


def expand(x, y):
    """Return waves of the radius beside the coordinates, so that a small network suffices."""
    radius = math.hypot(x, y)
    return (x, y, radius, math.sin(3.0 * radius), math.cos(3.0 * radius))


def new_model(inputs):
    """Return weights drawn from the seed."""
    draw = random.Random(SEED)
    return {
        "w1": [[draw.gauss(0, 0.5) for _ in range(inputs)] for _ in range(HIDDEN)],
        "b1": [0.0] * HIDDEN,
        "w2": [draw.gauss(0, 0.5) for _ in range(HIDDEN)],
        "b2": 0.0,
    }


def forward(model, features):
    """Return the hidden layer and the probability of label 1."""
    hidden = [
        math.tanh(sum(w * f for w, f in zip(row, features)) + bias)
        for row, bias in zip(model["w1"], model["b1"])
    ]
    score = sum(w * h for w, h in zip(model["w2"], hidden)) + model["b2"]
    return hidden, 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, score))))


def train_step(model, batch):
    """Move the weights once against the gradient of the batch."""
    for features, label in batch:
        hidden, probability = forward(model, features)
        error = RATE * (probability - label) / len(batch)
        for unit in range(HIDDEN):
            back = error * model["w2"][unit] * (1.0 - hidden[unit] ** 2)
            model["w2"][unit] -= error * hidden[unit]
            model["b1"][unit] -= back
            row = model["w1"][unit]
            for index, feature in enumerate(features):
                row[index] -= back * feature
        model["b2"] -= error


def loss_of(model, data):
    """Return the mean cross entropy."""
    total = 0.0
    for features, label in data:
        probability = min(max(forward(model, features)[1], 1e-12), 1 - 1e-12)
        total -= math.log(probability if label else 1 - probability)
    return total / len(data)


def accuracy_of(model, data):
    """Return the share that is told right."""
    right = sum((forward(model, features)[1] > 0.5) == bool(label) for features, label in data)
    return right / len(data)


def save(model, step):
    """Write a checkpoint; it is complete when it has its name."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"step-{step:06d}.json"
    partial = path.with_suffix(".partial")
    with open(partial, "w") as file:
        json.dump({"step": step, "model": model}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    return path


def middle(values, share=0.5):
    """Return the value below which that share lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def restore(path, data):
    """Load a checkpoint as a fresh process does; return its loss, exactly, and infer."""
    model = json.loads(Path(path).read_text())["model"]
    times = []
    for number in range(BURST):
        begun = time.perf_counter()
        forward(model, data[number % len(data)][0])
        times.append(time.perf_counter() - begun)
    print(json.dumps({"loss": loss_of(model, data).hex(), "times": times}))


def main():
    """Run every step and print the table."""
    begun = time.perf_counter()
    data = load("data.csv")
    loaded = time.perf_counter() - begun
    print(f"loaded {len(data)} rows in {loaded * 1000:.1f} ms", flush=True)
    model, draw = new_model(len(data[0][0])), random.Random(SEED)
    steps, saves, path = [], [], None
    for step in range(1, STEPS + 1):
        begun = time.perf_counter()
        train_step(model, draw.sample(data, BATCH))
        steps.append(time.perf_counter() - begun)
        if step % EVERY == 0 or step == STEPS:
            begun = time.perf_counter()
            path = save(model, step)
            saves.append(time.perf_counter() - begun)
            print(f"step {step}: loss {loss_of(model, data):.4f}, saved {path.name}", flush=True)
    before = loss_of(model, data).hex()
    answer = subprocess.run(
        [sys.executable, __file__, "restore", str(path)], stdout=subprocess.PIPE, check=True
    )
    after = json.loads(answer.stdout)
    if after["loss"] != before:
        sys.exit(f"the loss after the restore is {after['loss']}, before it was {before}")
    print("restored in a fresh process: the loss is the same to the last bit", flush=True)
    table = {
        "step time p50 (ms)": 1000 * middle(steps),
        "samples per second": BATCH * len(steps) / sum(steps),
        "checkpoint p50 (ms)": 1000 * middle(saves),
        "inference p50 (us)": 1e6 * middle(after["times"]),
        "inference p95 (us)": 1e6 * middle(after["times"], 0.95),
        "accuracy": accuracy_of(model, data),
        "loss": float.fromhex(before),
    }
    print("\nbaseline")
    for name, value in table.items():
        print(f"  {name:<22}{value:>12.3f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["restore"]:
        restore(sys.argv[2], load("data.csv"))
    else:
        main()
