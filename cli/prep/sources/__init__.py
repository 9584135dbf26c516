"""The verbs of ``custos prep`` that read published data sets."""
