"""The queue in front of the model, the thread that runs the model, and their counters."""
