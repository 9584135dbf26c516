"""Splits that share no question, with filters, class balance and manifests."""
