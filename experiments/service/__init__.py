"""What the service withstands."""
