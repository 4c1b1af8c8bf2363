"""The tests of Slipway; laid out like the rooms."""
