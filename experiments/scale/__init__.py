"""What grading with many workers and servers costs, and what their faults do."""
