"""What the commands do before a run: its command line, its plan, its processes, its seeds."""
