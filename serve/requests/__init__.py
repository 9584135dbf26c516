"""Request bodies and their pictures, checked before they are queued."""
