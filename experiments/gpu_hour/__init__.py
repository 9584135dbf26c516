"""The first hour on a GPU: six steps of at most nine minutes, each figure kept as it comes."""
