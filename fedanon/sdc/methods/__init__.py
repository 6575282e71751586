"""Statistical disclosure control: methods that change values instead of generalising them. They promise nothing."""
