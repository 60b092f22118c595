"""Bad clients, too many clients, bad moments: what the server has to survive, with figures."""
