"""Steps of building a data set with a model. Adding a step is adding a class here."""
