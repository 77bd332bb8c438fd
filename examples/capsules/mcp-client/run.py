import aod

aod.run()
