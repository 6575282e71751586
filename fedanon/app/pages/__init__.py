"""The pages of the app, one module each: what is shown (a page) and what its forms do (actions)."""
