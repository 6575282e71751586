"""How a stream of records is generalized: one file per method, registered under the name a gateway gives."""
