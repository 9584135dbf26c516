"""The queue in front of the model, the thread that runs it, and its counters."""
