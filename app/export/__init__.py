"""Charts as files: a page of their own, an image, or their numbers."""
