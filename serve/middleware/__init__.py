"""What happens to every call before its route is reached, and to every answer after it."""
