"""Joint anonymization: the nodes of a federation agree on one recoding, and k is counted over all of them.

Alone, a node needs k people of its own in every class. Jointly, the people of all nodes count, so that cells can be
much finer. No row leaves a node: the server sends queries, the nodes answer with counts, and the server chooses
*regions*, the boxes of quasi-identifier space that become equivalence classes. In reading order:

``protocol``      one run: grow regions, count them a last time, merge those that are too small, hand out the plan
``query_runner``  sends a query to all nodes and returns their counts, one by one or as a sum
``queries``       which counts the server may ask for, what an answer looks like, and its validation
``axes``          every quasi-identifier as a line of integer bins that follow from the schema alone
``regions``       how space is divided: by a tree of cuts, or by the nearest of some boxes
``merging``       regions without k people join others; ``bounds`` says how many people a noisy count proves
``plan``          the recoding that every node applies, with the count that proves the claim
``node``          the node's side: answers queries, recodes its rows by the plan, trains on its release
``method``        what all joint methods share; ``methods`` has one file for each of them
``disclosure``    what a node does to its counts before they leave it; ``noise``, ``masks`` and ``signing`` serve it

Nothing here knows Flower: :mod:`fedanon.federated.joint_server` carries the messages. docs/explanation/joint.md
explains the protocol, what it gives away, and what it costs.
"""

from fedanon.registry import Registry

JOINT_METHODS: Registry[type] = Registry("joint method", f"{__name__}.methods", group="fedanon.joint_methods")
