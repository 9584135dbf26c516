"""OpenAI's chat completions, so that today's benchmark scripts can ask our judges."""

from serve.chat.models import check_alias_names, check_aliases
from serve.chat.routes import routes

__all__ = ["check_alias_names", "check_aliases", "routes"]
