"""Objectives: from logits at the slots of a label tree to a loss."""
