"""Pages for people: a playground, the judges with what was measured of them, the live queue."""
