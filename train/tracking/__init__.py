"""The record of a run: progress on the screen, logs, trackers, throughput."""
