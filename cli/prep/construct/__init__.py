"""The verbs of ``custos prep construct``."""
