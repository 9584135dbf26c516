"""From a recipe to everything that a run starts with."""
