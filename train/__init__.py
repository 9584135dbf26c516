"""Training: one script per recipe kind on a shared loop."""
