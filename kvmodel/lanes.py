"""What to say of more lanes than two sides have."""

from __future__ import annotations

from kvmodel.display import count_text
from kvmodel.plan import Plan


def lanes_notes(plan: Plan) -> tuple[str, ...]:
    """That more lanes are asked for than NICs and ranks offer, which times assume all the same; none where not."""
    if plan.lanes <= plan.offered_lanes:
        return ()
    one, many = {"gpu": ("NIC", "NICs"), "same-node": ("rank", "ranks")}.get(plan.link.scope, ("link", "links"))
    offered = f"{count_text(plan.offered_lanes)} {one if plan.offered_lanes == 1 else many}"
    cap = plan.engine.max_lanes_per_gpu
    rails = f" at {count_text(cap)} a rank under {plan.engine.name}" if cap and plan.link.scope == "gpu" else ""
    asked = f"{count_text(plan.lanes)} lanes are more than the {offered} that the narrower side offers{rails}"
    return (f"{asked}; times assume them all the same.",)
