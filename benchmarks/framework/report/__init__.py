"""The report on one graded file, as an HTML page and as Markdown."""
