"""Pictures of calls, decoded in processes of their own before they enter the queue."""
