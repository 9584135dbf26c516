"""Made training data whose labels are true by construction."""
