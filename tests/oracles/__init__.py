"""Independent readers that check the labels of the synthetic data."""
