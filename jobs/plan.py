"""The one next step of a job from a frozen snapshot (pure)."""
