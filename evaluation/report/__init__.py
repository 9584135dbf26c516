"""The report on one judge: figures, Markdown and plots."""
