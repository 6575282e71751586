"""The joint methods, one file each."""
