"""Steps, runs of shipped recipes, and the table of figures, which the tests of a GPU share."""
