"""The verbs that serve judges, and that test a service."""
