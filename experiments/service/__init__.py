"""Tests of a service under hostile load and faults."""
