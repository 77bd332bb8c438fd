//go:build !linux

package expr

import "time"

// threadTime returns the time since the program began: of a thread alone it can't be told here.
func threadTime() time.Duration { return time.Since(programBegan) }

var programBegan = time.Now()
