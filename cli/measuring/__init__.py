"""The verbs that measure judges against people, and that calibrate them."""
