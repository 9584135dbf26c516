"""Headless Chromium, where it is installed."""

from tests.browser import browser as browser
