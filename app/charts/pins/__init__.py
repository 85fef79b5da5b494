"""The pinned scenario in the charts of another: hollow bars, dashed lines, outlines, rings."""
