"""What every call has: limits, errors, an id, a key, bytes in memory, a deadline and its turns."""
