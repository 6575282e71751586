"""A federation of real machines: keys, folders, and the Flower processes of a server and its nodes."""
