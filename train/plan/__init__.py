"""The plan of a training run before anything is loaded: memory, steps, time."""
