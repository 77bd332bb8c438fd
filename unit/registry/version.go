package registry

import "strings"

// versionDigits is how much of a digest names a version.
const versionDigits = 16

func versionOf(digest string) string { return digest[:versionDigits] }

func isVersion(s string) bool { return len(s) == versionDigits && isHex(s) }

func isDigest(s string) bool { return len(s) == 64 && isHex(s) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
