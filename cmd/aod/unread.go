package main

import "time"

// unreadPause is the time between two looks.
const unreadPause = 200 * time.Millisecond

// waitUnread returns true when a pipe or socket has lost its reader, and false when done is
// closed or that can't be told.
func waitUnread(fd int, done <-chan struct{}) bool {
	for {
		select {
		case <-done:
			return false
		default:
		}
		if gone, err := readerGone(fd, unreadPause); gone || err != nil {
			return gone && err == nil
		}
	}
}
