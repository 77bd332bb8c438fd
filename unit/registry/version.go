package registry

// versionDigits is how much of a digest names a version.
const versionDigits = 16

func versionOf(digest string) string { return digest[:versionDigits] }

func isVersion(s string) bool { return len(s) == versionDigits && isHex(s) }

func isDigest(s string) bool { return len(s) == 64 && isHex(s) }

func isHex(s string) bool {
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}
