"""The log store: what agents post, in order, until it is compacted; and how it is read.

`posts` and `frames` are pure; `store` appends, `read` reads, `keep` compacts and forgets.
"""
