"""Raw data to labelled examples: loaders, filters, splits and the files they are kept in."""
