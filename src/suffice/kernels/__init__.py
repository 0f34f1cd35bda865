"""Arrays in, arrays out: the compute layer.

Each public function has a NumPy path, which serves small work and is the reference in the tests, and a compiled path in
`suffice.kernels.compiled`. `suffice.kernels.choice` decides between them; nothing here imports Numba before it pays.
"""
