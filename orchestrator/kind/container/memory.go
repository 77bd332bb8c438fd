package container

import "context"

// Memory implements run.Measurer: it waits until the engine answers.
func (c *Containers) Memory(ctx context.Context) int64 {
	info, err := c.awaitEngine(ctx)
	if err != nil {
		return 0
	}
	return info.MemoryBytes
}
