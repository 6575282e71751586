"""Anonymise together: the hospitals of a federation agree on one recoding, and k is counted over all of them.

Clients send counts, the server chooses regions, clients recode their rows with them; docs/together.md has the protocol
and what it gives away.
"""

from fedanon.registry import Registry

TOGETHER: Registry[type] = Registry("federated anonymizer", f"{__name__}.methods")
