"""What the tests of a GPU share: steps, runs of shipped recipes, and the table of figures."""
