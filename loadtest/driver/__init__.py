"""The parts of loadtest/load.py."""
