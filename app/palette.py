"""Colours by meaning, in both themes, and the chart template made of them."""

from __future__ import annotations

from typing import Any

LIGHT = {
    "prefill": "#1A5FA8",
    "prefill_text": "#1A5FA8",
    "wire": "#D86A00",
    "wire_text": "#A94F00",
    "exposed": "#B5104F",
    "exposed_text": "#B5104F",
    "decode": "#0E9880",
    "decode_text": "#08705F",
    "pool": "#4B2E83",
    "pool_text": "#4B2E83",
    "other": "#8A93A3",
    "bg": "#FFFFFF",
    "panel": "#F5F6F8",
    "ink": "#1B2230",
    "body": "#3D4656",
    "muted": "#667085",
    "line": "#C9CFD8",
    "grid": "#E6E9EE",
    "soft_prefill": "#C6DDF0",
    "soft_decode": "#BDE3DB",
    "soft_pool": "#DDD0EF",
    "heat0": "#F5F6F8",
    "heat0_text": "#3D4656",
    "heat1": "#FBE3C8",
    "heat1_text": "#1B2230",
    "heat2": "#F2A95C",
    "heat2_text": "#1B2230",
    "heat3": "#B85600",
    "heat3_text": "#FFFFFF",
    "heat4": "#8E0B3C",
    "heat4_text": "#FFFFFF",
    "clear": "rgba(0,0,0,0)",
    "halo": "0 0 2px #FFFFFF, 0 0 3px #FFFFFF, 0 0 4px #FFFFFF",
}
DARK = {
    "prefill": "#4A96EA",
    "prefill_text": "#7DBCF5",
    "wire": "#FFA040",
    "wire_text": "#FFAE63",
    "exposed": "#F2447C",
    "exposed_text": "#FF7DA5",
    "decode": "#52E0C2",
    "decode_text": "#52E0C2",
    "pool": "#D9C8FF",
    "pool_text": "#D9C8FF",
    "other": "#7B8596",
    "bg": "#0E1117",
    "panel": "#181C25",
    "ink": "#F3F5F8",
    "body": "#C8CFDA",
    "muted": "#97A1B1",
    "line": "#3C4452",
    "grid": "#252B36",
    "soft_prefill": "#1E3D5A",
    "soft_decode": "#144A42",
    "soft_pool": "#41335C",
    "heat0": "#1A1F28",
    "heat0_text": "#C8CFDA",
    "heat1": "#3A2D1C",
    "heat1_text": "#F3F5F8",
    "heat2": "#7A4A16",
    "heat2_text": "#F3F5F8",
    "heat3": "#D9822B",
    "heat3_text": "#0E1117",
    "heat4": "#FFC2D2",
    "heat4_text": "#0E1117",
    "clear": "rgba(0,0,0,0)",
    "halo": "0 0 2px #0E1117, 0 0 3px #0E1117, 0 0 4px #0E1117",
}
FONT = '"Source Sans", "Source Sans Pro", -apple-system, "Segoe UI", sans-serif'


def template(colours: dict[str, str]) -> dict[str, Any]:
    """The Plotly template of a theme."""
    text = {"family": FONT, "size": 13, "color": colours["body"]}
    quiet = {"size": 13, "color": colours["muted"]}
    axis = {
        "showgrid": False,
        "zeroline": False,
        "showline": False,
        "ticks": "",
        "tickcolor": colours["line"],
        "linecolor": colours["line"],
        "gridcolor": colours["grid"],
        "gridwidth": 1,
        "tickfont": quiet,
        "title": {"font": quiet, "standoff": 8},
        "automargin": False,
        "fixedrange": True,
    }
    return {
        "layout": {
            "font": text,
            "paper_bgcolor": colours["clear"],
            "plot_bgcolor": colours["clear"],
            "margin": {"l": 0, "r": 0, "t": 8, "b": 40},
            "showlegend": False,
            "hovermode": "closest",
            "bargap": 0.3,
            "dragmode": False,
            "separators": ".,",
            "xaxis": axis,
            "yaxis": {**axis, "showgrid": True},
            "hoverlabel": {
                "bgcolor": colours["panel"],
                "bordercolor": colours["line"],
                "align": "left",
                "font": {**text, "color": colours["ink"]},
            },
            "annotationdefaults": {"showarrow": False, "font": text},
        },
        "data": {"bar": [{"marker": {"line": {"width": 0}}}]},
    }


THEMES = {mode: {"colours": colours, "template": template(colours)} for mode, colours in (("light", LIGHT), ("dark", DARK))}
"""What a view needs to draw in either theme."""
