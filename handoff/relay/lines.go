package relay

import (
	"bufio"
	"context"
	"errors"
	"io"
)

// FromLines passes the messages of a client on that writes each as a line, until it ends.
func FromLines(ctx context.Context, client io.Reader, s *Session) error {
	from := bufio.NewReaderSize(client, 64<<10)
	for {
		line, err := readLine(from)
		switch {
		case errors.Is(err, io.EOF):
			s.HangUp()
			return nil
		case err != nil:
			return err
		case len(line) == 0:
			continue
		}
		if err := s.FromClient(ctx, line); err != nil {
			return err
		}
	}
}
