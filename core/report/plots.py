"""plotly comes in here alone, so that all figures are made by one version of one library."""

from plotly.graph_objects import Figure

__all__ = ["Figure"]
