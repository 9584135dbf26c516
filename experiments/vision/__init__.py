"""The warm-up that made the vision tower of the embedded backbone."""
