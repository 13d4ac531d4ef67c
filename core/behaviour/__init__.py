"""What people did with results: recorded, exported, erased, and turned into a signal that ranks items."""
