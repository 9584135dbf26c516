"""Pictures of calls: fetched and measured when they come, decoded by processes of their own."""
