"""A user's own table: from its columns and words to our fields and labels."""
