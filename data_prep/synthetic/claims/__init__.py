"""Made explanations: references of several sentences, and responses that give all, some or none."""
