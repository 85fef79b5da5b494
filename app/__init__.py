"""The explorer: page, charts and command line over `kvmodel`."""
