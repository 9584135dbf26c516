"""A short rehearsal of a run: a few real steps, and everything that follows training."""
