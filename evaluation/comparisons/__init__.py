"""A judge beside something else: another judge, a baseline, a second person."""
