"""Several people's labels: how far they agree, and whether a judge could take a person's place."""
