"""What a page that anyone may open needs around it: settings, limits, headers and a log."""
