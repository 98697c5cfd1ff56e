"""Figures of learning curves, maps and calibrations, and the page that shows them."""
