"""The bridge: reads /io, checks the contract, calls execute in src/main.py."""

import aod

aod.run()
