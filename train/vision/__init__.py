"""The vision tower of the embedded backbone and the pictures that it is trained on."""
