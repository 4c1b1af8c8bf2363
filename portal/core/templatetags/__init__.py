"""Tags of Slipway's templates."""
