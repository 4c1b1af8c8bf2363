"""The complete run: load, train, checkpoint, restore in a fresh process, infer, and measure.

It needs nothing but Python 3.9. A small network (one hidden layer, two classes) learns to tell two
spirals apart by plain gradient descent; with PyTorch it runs there, on the GPU if one was given.
What counts is not the model but that each step of a training pipeline works here, and how long it
takes. `SLIPWAY_RESUME_FROM` goes on from a checkpoint; the signal USR1 saves one and ends.
"""

import csv
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

STEPS = int(os.environ.get("SLIPWAY_PARAM_STEPS", "3000"))
HIDDEN = int(os.environ.get("SLIPWAY_PARAM_HIDDEN", "24"))
SEED = int(os.environ.get("SLIPWAY_PARAM_SEED", "7"))
BATCH, RATE, EVERY, BURST = 32, 0.5, 500, 1000
FOLDER = Path(os.environ.get("SLIPWAY_CHECKPOINT_DIR", "checkpoints"))
SAVE_AND_END = 3  # exit code after the checkpoint signal


def load(path):
    """Return the rows as (features, label)."""
    with open(path, newline="") as file:
        rows = [((float(x), float(y)), int(label)) for x, y, label in csv.reader(file)]
    return [(expand(x, y), label) for (x, y), label in rows]


def expand(x, y):
    """Return waves of the radius beside the coordinates, so that a small network suffices."""
    radius = math.hypot(x, y)
    return (x, y, radius, math.sin(3.0 * radius), math.cos(3.0 * radius))


class Plain:
    """The network in plain Python, one number after the other."""

    name = "plain Python"

    def __init__(self, inputs, weights=None):
        draw = random.Random(SEED)
        self.weights = weights or {
            "w1": [[draw.gauss(0, 0.5) for _ in range(inputs)] for _ in range(HIDDEN)],
            "b1": [0.0] * HIDDEN,
            "w2": [draw.gauss(0, 0.5) for _ in range(HIDDEN)],
            "b2": 0.0,
        }

    def forward(self, features):
        """Return the hidden layer and the probability of label 1."""
        hidden = [
            math.tanh(sum(w * f for w, f in zip(row, features)) + bias)
            for row, bias in zip(self.weights["w1"], self.weights["b1"])
        ]
        score = sum(w * h for w, h in zip(self.weights["w2"], hidden)) + self.weights["b2"]
        return hidden, 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, score))))

    def probabilities(self, rows):
        """Return the probability of label 1 for each row."""
        return [self.forward(features)[1] for features in rows]

    def train(self, batch):
        """Move the weights once against the gradient of the batch."""
        weights = self.weights
        for features, label in batch:
            hidden, probability = self.forward(features)
            error = RATE * (probability - label) / len(batch)
            for unit in range(HIDDEN):
                back = error * weights["w2"][unit] * (1.0 - hidden[unit] ** 2)
                weights["w2"][unit] -= error * hidden[unit]
                weights["b1"][unit] -= back
                row = weights["w1"][unit]
                for index, feature in enumerate(features):
                    row[index] -= back * feature
            weights["b2"] -= error

    def state(self):
        """Return the weights as JSON keeps them, to the last bit."""
        return self.weights


class Torch:
    """The same network in PyTorch, in double precision, on the GPU if there is one."""

    def __init__(self, inputs, weights=None):
        warnings.filterwarnings("ignore", message=".*NumPy.*")  # which nothing here needs
        import torch

        torch.manual_seed(SEED)
        torch.use_deterministic_algorithms(mode=True)
        self.torch = torch
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        kind = torch.cuda.get_device_name() if self.device == "cuda" else "CPU"
        self.name = f"PyTorch {torch.__version__} on {kind}"
        layers = torch.nn.Linear(inputs, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, 1)
        self.model = torch.nn.Sequential(*layers).double().to(self.device)
        if weights:
            self.model.load_state_dict({n: self.tensor(w) for n, w in weights.items()})
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=RATE)

    def tensor(self, values):
        """Return numbers on the device."""
        return self.torch.tensor(values, dtype=self.torch.float64, device=self.device)

    def probabilities(self, rows):
        """Return the probability of label 1 for each row."""
        with self.torch.no_grad():
            return self.torch.sigmoid(self.model(self.tensor(rows)))[:, 0].tolist()

    def train(self, batch):
        """Move the weights once against the gradient of the batch."""
        features, labels = zip(*batch)
        self.optimizer.zero_grad()
        score = self.model(self.tensor(features))[:, 0]
        loss = self.torch.nn.functional.binary_cross_entropy_with_logits
        loss(score, self.tensor([float(label) for label in labels])).backward()
        self.optimizer.step()
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def state(self):
        """Return the weights as JSON keeps them, to the last bit."""
        return {name: weight.tolist() for name, weight in self.model.state_dict().items()}


def new_model(inputs, weights=None):
    """Return the network for what is installed here."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic on the GPU
    try:
        return Torch(inputs, weights)
    except ImportError:
        return Plain(inputs, weights)


def loss_of(model, data):
    """Return the mean cross entropy."""
    total = 0.0
    found = model.probabilities([features for features, _label in data])
    for probability, (_features, label) in zip(found, data):
        probability = min(max(probability, 1e-12), 1 - 1e-12)
        total -= math.log(probability if label else 1 - probability)
    return total / len(data)


def accuracy_of(model, data):
    """Return the share that is told right."""
    found = model.probabilities([features for features, _label in data])
    right = sum((p > 0.5) == bool(label) for p, (_features, label) in zip(found, data))
    return right / len(data)


def save(model, step, draw):
    """Write a checkpoint; it is complete when it has its name."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"step-{step:06d}.json"
    partial = path.with_suffix(".partial")
    version, numbers, gauss = draw.getstate()
    with open(partial, "w") as file:
        random_state = [version, list(numbers), gauss]
        json.dump({"step": step, "model": model.state(), "random": random_state}, file)
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    return path


def begin(inputs):
    """Return a new model at step 0, or one from the checkpoint that the job resumes from."""
    draw, resume = random.Random(SEED), os.environ.get("SLIPWAY_RESUME_FROM")
    if not resume:
        return new_model(inputs), 0, draw
    saved = json.loads(Path(resume).read_text())
    version, numbers, gauss = saved["random"]
    draw.setstate((version, tuple(numbers), gauss))
    print(f"goes on from {Path(resume).name}", flush=True)
    return new_model(inputs, saved["model"]), saved["step"], draw


def middle(values, share=0.5):
    """Return the value below which that share lies."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def restore(path, data):
    """Load a checkpoint as a fresh process does; return its loss, exactly, and infer."""
    model = new_model(len(data[0][0]), json.loads(Path(path).read_text())["model"])
    times = []
    for number in range(BURST):
        begun = time.perf_counter()
        model.probabilities([data[number % len(data)][0]])
        times.append(time.perf_counter() - begun)
    print(json.dumps({"loss": loss_of(model, data).hex(), "times": times}))


def train(model, data, draw, first):
    """Train to the last step; return the times of steps and checkpoints, and the last path."""
    asked, steps, saves, path = [], [], [], None
    signal.signal(signal.SIGUSR1, lambda *_: asked.append(True))
    for step in range(first + 1, STEPS + 1):
        begun = time.perf_counter()
        model.train(draw.sample(data, BATCH))
        steps.append(time.perf_counter() - begun)
        if step % EVERY == 0 or step == STEPS or asked:
            begun = time.perf_counter()
            path = save(model, step, draw)
            saves.append(time.perf_counter() - begun)
            print(f"step {step}: loss {loss_of(model, data):.4f}, saved {path.name}", flush=True)
        if asked:
            print("asked to end: everything up to this step is saved", flush=True)
            sys.exit(SAVE_AND_END)
    return steps, saves, path


def main():
    """Run every step and print the table."""
    begun = time.perf_counter()
    data = load("data.csv")
    loaded = time.perf_counter() - begun
    model, first, draw = begin(len(data[0][0]))
    print(f"loaded {len(data)} rows in {loaded * 1000:.1f} ms; trains in {model.name}", flush=True)
    if first >= STEPS:
        sys.exit(f"the checkpoint is of step {first}, and {STEPS} steps are asked for")
    steps, saves, path = train(model, data, draw, first)
    before = loss_of(model, data).hex()
    answer = subprocess.run(
        [sys.executable, __file__, "restore", str(path)], stdout=subprocess.PIPE, check=True
    )
    after = json.loads(answer.stdout)
    if after["loss"] != before:
        sys.exit(f"the loss after the restore is {after['loss']}, before it was {before}")
    print("restored in a fresh process: the loss is the same to the last bit", flush=True)
    table = {
        "load (ms)": 1000 * loaded,
        "step time p50 (ms)": 1000 * middle(steps),
        "samples per second": BATCH * len(steps) / sum(steps),
        "checkpoint p50 (s)": middle(saves),
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
