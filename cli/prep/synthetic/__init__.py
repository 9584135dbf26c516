"""The verbs of ``custos prep`` that make examples whose labels are known."""
