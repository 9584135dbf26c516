"""Made responses to made questions of three benchmarks; labels hold by construction."""
