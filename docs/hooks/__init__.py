"""Pages of the site that are made from the code when the site is built."""
