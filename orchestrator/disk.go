package orchestrator

import "io"

// room returns a fault where need more bytes would leave less than MinFreeDisk.
func (l *loop) room(need int64) error { return l.home.Disks.Room(need) }

// roomStep is how much is received between two looks at the room that is left.
const roomStep = 8 << 20

// roomWriter stops writing where the room ends: many may write at once.
type roomWriter struct {
	io.Writer
	room func(need int64) error
	left int64 // bytes until the next look
	err  error // why it stopped
}

func (w *roomWriter) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		if w.err = w.room(0); w.err != nil {
			return 0, w.err
		}
		w.left = roomStep
	}
	return w.Writer.Write(p)
}
