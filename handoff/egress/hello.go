package egress

import (
	"errors"
	"io"
	"strings"

	"golang.org/x/crypto/cryptobyte"
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
	hostName  = uint8(0)     // the type of a name in it
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
	name, ok := serverName(message[helloHead:][:helloLen(message)])
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
func serverName(body cryptobyte.String) (name string, ok bool) {
	var passed, extensions cryptobyte.String
	fixed := body.Skip(2+32) && body.ReadUint8LengthPrefixed(&passed) &&
		body.ReadUint16LengthPrefixed(&passed) && body.ReadUint8LengthPrefixed(&passed)
	if !fixed {
		return "", false
	}
	if body.Empty() { // no extensions
		return "", true
	}
	if !body.ReadUint16LengthPrefixed(&extensions) || !body.Empty() {
		return "", false
	}
	found := false
	for !extensions.Empty() {
		var kind uint16
		var data cryptobyte.String
		if !extensions.ReadUint16(&kind) || !extensions.ReadUint16LengthPrefixed(&data) {
			return "", false
		}
		if kind != nameExt {
			continue
		}
		if name, ok = onlyName(data); !ok || found {
			return "", false
		}
		found = true
	}
	return name, true
}

// onlyName returns the one name in the extension server_name (RFC 6066, 3).
func onlyName(data cryptobyte.String) (string, bool) {
	var names, name cryptobyte.String
	var kind uint8
	ok := data.ReadUint16LengthPrefixed(&names) && data.Empty() &&
		names.ReadUint8(&kind) && names.ReadUint16LengthPrefixed(&name) && names.Empty()
	return string(name), ok && kind == hostName && !name.Empty()
}
