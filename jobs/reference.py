"""Every key of a definition's `spec`, for who writes one: what it means, and an example (pure)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One key; `name` is its path, such as `resources.nodes`."""

    name: str
    meaning: str
    example: str = ""


KEYS = (
    Key(
        name="regime",
        meaning="What kind of work it is: smoke, pretraining, post_training, inference or batch.",
        example="regime: pretraining",
    ),
    Key(
        name="description",
        meaning="One sentence for who chooses it.",
        example="description: Trains the small model",
    ),
    Key(
        name="command",
        meaning="What runs, as a list. Each {{ name }} fills a part of one element. Or a script.",
        example='command: [python3, train.py, "--lr={{ lr }}"]',
    ),
    Key(
        name="script",
        meaning="What runs, as shell text. Each {{ name }} becomes a quoted reference.",
        example='script: |\n  python3 train.py --lr "{{ lr }}"',
    ),
    Key(
        name="launch",
        meaning="once: on the first node (usual for script). per_node: on each (for command).",
        example="launch: per_node",
    ),
    Key(
        name="parameters",
        meaning="What people fill in: name and JSON Schema. With a default it may be left alone.",
        example="parameters:\n  lr: {type: number, exclusiveMinimum: 0, default: 3.0e-5}",
    ),
    Key(
        name="image",
        meaning="The container image, by digest. The local cluster runs none.",
        example="image: registry.example.org/train@sha256:9f2c…",
    ),
    Key(name="resources", meaning="What it asks for; people may change it at launch."),
    Key(name="resources.nodes", meaning="How many machines.", example="nodes: 4"),
    Key(name="resources.gpus_per_node", meaning="GPUs on each.", example="gpus_per_node: 8"),
    Key(name="resources.gpu_type", meaning="Which; empty is any.", example="gpu_type: h100"),
    Key(name="resources.cpus_per_node", meaning="CPUs on each.", example="cpus_per_node: 16"),
    Key(
        name="resources.memory_bytes_per_node",
        meaning="Memory on each; 0 leaves it to the cluster.",
        example="memory_bytes_per_node: 68719476736",
    ),
    Key(
        name="time_limit_seconds",
        meaning="The longest it may run, up to 30 days. Required.",
        example="time_limit_seconds: 43200",
    ),
    Key(
        name="env",
        meaning="Variables of its environment.",
        example='env: {OMP_NUM_THREADS: "8"}',
    ),
    Key(
        name="secrets",
        meaning="Variable and the name of a secret of the team; read when it starts, never shown.",
        example="secrets: {HF_TOKEN: hf-write}",
    ),
    Key(
        name="data",
        meaning="What it reads, and where it finds that; stage copies it first.",
        example="data:\n  - {source: s3://bucket/set, target: /data/set, stage: true}",
    ),
    Key(name="checkpoint", meaning="How it saves itself, so that a stop loses little."),
    Key(
        name="checkpoint.path",
        meaning="The folder; a checkpoint is an entry that a rename put there.",
        example="path: checkpoints",
    ),
    Key(
        name="checkpoint.interval_seconds",
        meaning="How often it saves, for forecasts.",
        example="interval_seconds: 1800",
    ),
    Key(
        name="checkpoint.signal",
        meaning="Sent first when it is to stop: INT, TERM, USR1 or USR2.",
        example="signal: USR1",
    ),
    Key(
        name="checkpoint.grace_seconds",
        meaning="How long it may take to save then.",
        example="grace_seconds: 120",
    ),
    Key(name="retry", meaning="When it is tried again by itself."),
    Key(
        name="retry.max_attempts",
        meaning="How often in all; 1 is never again.",
        example="max_attempts: 3",
    ),
    Key(
        name="retry.on",
        meaning="After which ends: preempted, node_failure, out_of_memory, lost, exit_code.",
        example="on: [preempted, node_failure]",
    ),
    Key(
        name="spot",
        meaning="It may run on capacity that can be taken away.",
        example="spot: true",
    ),
    Key(
        name="priority",
        meaning="Higher goes first in the team's line, from -1000 to 1000.",
        example="priority: 10",
    ),
    Key(
        name="tags",
        meaning="Names and values to find its jobs by.",
        example="tags: {paper: neurips}",
    ),
)
