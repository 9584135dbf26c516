"""A judge as a plain checkpoint, for programs that know nothing of custos."""
