"""The verbs that list, describe and publish judges."""
