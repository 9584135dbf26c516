"""Words of made data: the tables, one YAML file a maker, their loader, and invented names."""
