"""The ``custos`` command: thin, one file per verb."""
