"""From requests to label probabilities: prompts, label trees, batches, engines."""
