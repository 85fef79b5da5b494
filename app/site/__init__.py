"""A static copy of the page: every view of many scenarios as files that any host can serve."""
