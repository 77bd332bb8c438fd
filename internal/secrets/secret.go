package secrets

import "log/slog"

// Secret is a text that only the other side of a call may see: printed, logged or written as JSON it is
// "[secret]".
type Secret string

const hidden = "[secret]"

func (s Secret) String() string { return hidden }

// GoString is for %#v.
func (s Secret) GoString() string { return hidden }

// LogValue is for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText is for JSON and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
