"""A fake server, and headless Chromium where it is installed."""

from tests.browser import browser as browser
from tests.clients.conftest import fake as fake
