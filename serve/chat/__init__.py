"""OpenAI's chat completions, so that today's benchmark scripts can ask our judges."""
