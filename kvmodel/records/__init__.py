"""Records: what a model, an accelerator, a link, an engine are."""
