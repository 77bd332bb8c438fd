package orchestrator

// room returns a fault where need more bytes would leave less than MinFreeDisk.
func (l *loop) room(need int64) error { return l.home.Disks.Room(need) }
