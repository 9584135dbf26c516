"""Forms that people fill in about rows. Adding a form is adding a class here."""
