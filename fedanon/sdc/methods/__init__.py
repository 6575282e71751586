"""Statistical disclosure control: methods that change values instead of generalizing them. They promise nothing."""
