"""The few compiled loops the rest shares; nothing else imports numba, and `import fedanon` does not import this."""
