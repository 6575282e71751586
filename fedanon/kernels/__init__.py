"""Compiled loops that several packages share; those of one method are beside it, in modules with an underscore.

Only kernels import numba, and they are imported where they are called, so that `import fedanon` compiles nothing.
"""
