"""``custos prep``: the verbs that turn raw data into files to train and test on."""
