"""What the verbs that grade write: files, tables, a summary."""
