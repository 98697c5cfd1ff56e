"""A page to explore what an agent or a policy knows, with sliders and a pointer."""

from rblspi.plotting.explorer.page import write

__all__ = ["write"]
