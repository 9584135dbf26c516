"""Training on critiques that the judge draws itself, with the trainers of TRL."""
