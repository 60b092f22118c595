"""Makes the trainer's modules importable: they are scripts in one folder, not a package."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "engine" / "training"))
