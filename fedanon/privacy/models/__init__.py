"""The privacy models a release can promise: one file a family."""
