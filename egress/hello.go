package egress

import (
	"errors"
	"io"
	"strings"
)

// Bounds of a TLS client's first message.
const (
	maxHello  = 16 << 10     // of the message, in bytes
	maxRecord = 16 << 10     // of each record that it comes in
	maxFlight = maxHello * 2 // of all records with their heads: a message may come in tiny ones
	recordLen = 5            // of a record's head
	helloHead = 4            // of a message's head
	handshake = byte(22)     // the type of records
	hello     = byte(1)      // the type of the message
	nameExt   = uint16(0)    // the extension server_name
	hostName  = byte(0)      // the type of a name in it
)

var (
	errNoTLS  = errors.New("it doesn't speak TLS")
	errNoName = errors.New("its TLS names no host")
)

// readHello reads the records of a TLS client's first message, and nothing behind them. It
// returns them as they came, and the name of the host that the message is for, in lower case.
func readHello(from io.Reader) (flight []byte, name string, err error) {
	var message []byte
	for !isWhole(message) {
		record, err := readRecord(from)
		if err != nil {
			return nil, "", err
		}
		flight, message = append(flight, record...), append(message, record[recordLen:]...)
		if len(flight) > maxFlight || len(message) >= helloHead && !isHello(message) {
			return nil, "", errNoTLS
		}
	}
	body := cursor(message[helloHead:])
	body = body[:helloLen(message)]
	name, ok := serverName(&body)
	if !ok {
		return nil, "", errNoTLS
	}
	if name == "" {
		return nil, "", errNoName
	}
	return flight, strings.ToLower(name), nil
}

// readRecord reads a handshake record with its head.
func readRecord(from io.Reader) ([]byte, error) {
	head := make([]byte, recordLen)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	n := int(head[3])<<8 | int(head[4])
	if head[0] != handshake || head[1] != 3 || n == 0 || n > maxRecord {
		return nil, errNoTLS
	}
	record := make([]byte, recordLen+n)
	copy(record, head)
	_, err := io.ReadFull(from, record[recordLen:])
	return record, err
}

// isHello reports whether a message is a client's first one, of a size that we take.
func isHello(message []byte) bool { return message[0] == hello && helloLen(message) <= maxHello }

func helloLen(message []byte) int {
	return int(message[1])<<16 | int(message[2])<<8 | int(message[3])
}

func isWhole(message []byte) bool {
	return len(message) >= helloHead && len(message)-helloHead >= helloLen(message)
}

// serverName returns the host that a ClientHello (RFC 8446, 4.1.2) names; "" is none. It isn't ok
// where the message has another form, or where it says something twice that counts here.
func serverName(body *cursor) (name string, ok bool) {
	fixed := body.skip(2+32) && body.skipVector(1) && body.skipVector(2) && body.skipVector(1)
	if !fixed {
		return "", false
	}
	if len(*body) == 0 { // no extensions
		return "", true
	}
	extensions, ok := body.vector(2)
	if !ok || len(*body) > 0 {
		return "", false
	}
	found := false
	for len(extensions) > 0 {
		kind, ok := extensions.number(2)
		data, whole := extensions.vector(2)
		if !ok || !whole {
			return "", false
		}
		if uint16(kind) != nameExt { //nolint:gosec // two bytes
			continue
		}
		if found {
			return "", false
		}
		found = true
		if name, ok = onlyName(data); !ok {
			return "", false
		}
	}
	return name, true
}

// onlyName returns the one name in the extension server_name (RFC 6066, 3).
func onlyName(data cursor) (string, bool) {
	names, ok := data.vector(2)
	if !ok || len(data) > 0 {
		return "", false
	}
	kind, ok := names.number(1)
	name, whole := names.vector(2)
	if !ok || !whole || byte(kind) != hostName || len(names) > 0 || len(name) == 0 { //nolint:gosec // one byte
		return "", false
	}
	return string(name), true
}

// cursor is what is left to read of a message.
type cursor []byte

func (c *cursor) skip(n int) bool {
	if len(*c) < n {
		return false
	}
	*c = (*c)[n:]
	return true
}

// number reads a number of so many bytes.
func (c *cursor) number(bytes int) (n int, ok bool) {
	if len(*c) < bytes {
		return 0, false
	}
	for _, b := range (*c)[:bytes] {
		n = n<<8 | int(b)
	}
	return n, c.skip(bytes)
}

// vector reads what stands behind its length, which has so many bytes.
func (c *cursor) vector(bytes int) (cursor, bool) {
	n, ok := c.number(bytes)
	if !ok || len(*c) < n {
		return nil, false
	}
	v := (*c)[:n]
	return v, c.skip(n)
}

func (c *cursor) skipVector(bytes int) bool {
	_, ok := c.vector(bytes)
	return ok
}
