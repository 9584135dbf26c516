"""Backbones, their processors and adapters, and the number formats they compute in."""
