"""The output of the verbs that grade: files, tables, a summary."""
