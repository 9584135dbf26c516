"""Pictures of known data, questions about them, and responses whose error is known."""
