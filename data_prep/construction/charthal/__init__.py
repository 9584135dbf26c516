"""ChartHal-style questions about one's own charts: written by a model, checked by people."""
