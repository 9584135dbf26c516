"""A fake server."""

from tests.data_prep.construction.conftest import fake as fake
