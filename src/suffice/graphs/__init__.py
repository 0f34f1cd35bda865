"""Graphs without probabilities: directed checks, moral graphs, triangulation, cliques and the trees that join them.

A directed graph is a mapping from each node to its parents; an undirected graph is a mapping from each node to the set
of its neighbours. Nodes are any hashable values. Results depend on the graph alone: not on the order in which nodes or
edges are given, and not on hash seeds, because ties are broken by the order of `suffice.graphs.nodes`.
"""
