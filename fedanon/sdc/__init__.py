"""Statistical disclosure control: methods that change values, their risk and loss, and the workflow around them."""
