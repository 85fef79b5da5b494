"""Views of the page, one a file: parameters, model, chart, show."""
