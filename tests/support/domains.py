"""Curves of RBLSPI that learn, on the paper's domains."""

from rblspi_paper import figures as paper

CURVES = {
    "MountainCar": paper.rblspi(paper.CAR, 20, 0.001, 0.1),
    "SparseMountainCar": paper.rblspi(paper.SPARSE_CAR, 20, 1.0, 1000.0),
    "InvertedPendulum": paper.rblspi(paper.pendulum(3), 20, 10.0, 100.0),
    "CartPole": paper.rblspi(paper.CART_POLE, 20, 0.01, 0.1),
    "PuddleWorld": paper.rblspi(paper.PUDDLES, 20, 0.001, 1.0),
}
