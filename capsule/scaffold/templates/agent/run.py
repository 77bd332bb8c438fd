"""The bridge: reads /io, has a model work by src/ai/task.md, and checks its answer."""

import aod

aod.run()
