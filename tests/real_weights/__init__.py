"""Published weights go through all that custos does (``make real-weights``)."""
