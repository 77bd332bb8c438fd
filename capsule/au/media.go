package au

import (
	"slices"
	"strings"
)

// Accepts reports whether the card takes an input of a type that Sniff returned. Only
// the content counts. The card takes an input if the content doesn't rule out its types:
//
//   - "*/*" and "application/octet-stream" in a card mean any bytes.
//   - "image/*" takes every image/… that Sniff knows, and no unknown bytes.
//   - Other names of the same type are the same (image/jpg, application/xml); parameters
//     and case don't count.
//   - A type that is a form of what was seen fits: text/csv is text, application/x+json is
//     JSON, an office document is a zip.
//   - Text and unknown bytes fit a type that Sniff can't know, such as
//     application/yaml or application/dicom. Plain text fits every text/…, unknown bytes
//     fit none.
//   - No input at all ("") fits: the unit decides what to do with it.
func (c *Card) Accepts(sniffed string) bool {
	sniffed = essence(sniffed)
	return sniffed == "" || slices.ContainsFunc(c.Inputs, func(m Media) bool { return fits(essence(m.Type), sniffed) })
}

// TakesAnything reports whether the card takes any bytes, so that none are corrupt.
func (c *Card) TakesAnything() bool {
	return slices.ContainsFunc(c.Inputs, func(m Media) bool { return anything(essence(m.Type)) })
}

func anything(declared string) bool { return declared == "*/*" || declared == unknownBytes }

// fits reports whether bytes of the type seen can be of the declared type.
func fits(declared, seen string) bool {
	family, subtype, _ := strings.Cut(declared, "/")
	switch {
	case anything(declared) || declared == seen:
		return true
	case subtype == "*":
		return strings.HasPrefix(seen, family+"/")
	case isFormOf(declared, seen):
		return true
	case isText(seen):
		return family == "text" && (seen == plainText || !markup[declared]) || !recognised(declared)
	}
	return seen == unknownBytes && !recognised(declared)
}

// isText reports whether a type that Sniff returned is some kind of text.
func isText(seen string) bool {
	return strings.HasPrefix(seen, "text/") || seen == "application/json" || seen == "image/svg+xml"
}

// markup are the declared types that other kinds of text don't fit.
var markup = map[string]bool{"text/html": true, "text/xml": true, "text/rtf": true}

// isFormOf reports whether a declared type is a form of the type seen.
func isFormOf(declared, seen string) bool {
	switch seen {
	case "application/json":
		return strings.HasSuffix(declared, "+json")
	case "text/xml", "text/html", "image/svg+xml":
		return strings.HasSuffix(declared, "+xml") || declared == "text/xml"
	case "application/zip":
		return strings.HasSuffix(declared, "+zip") ||
			hasAnyPrefix(declared, "application/vnd.", "application/java-archive")
	case "application/x-ole-storage":
		return hasAnyPrefix(declared, "application/vnd.ms-", "application/msword", "application/vnd.visio")
	case "application/gzip":
		return strings.HasSuffix(declared, "+gzip")
	case "video/mp4", "application/ogg":
		return strings.HasPrefix(declared, "audio/")
	case "image/heic", "image/heif":
		return hasAnyPrefix(declared, "image/heic", "image/heif")
	}
	return false
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s, p) })
}

// recognised reports whether Sniff knows a type or its family. It knows pictures, sound,
// film and text so well that unknown bytes fit none of them.
func recognised(media string) bool {
	if hasAnyPrefix(media, "image/", "audio/", "video/", "text/", "font/") || standardTypes[media] {
		return true
	}
	return slices.ContainsFunc(signatures, func(s signature) bool { return s.media == media })
}

// standardTypes are the types of net/http outside those families.
var standardTypes = map[string]bool{
	"application/json": true, "application/pdf": true, "application/postscript": true, "application/zip": true,
	"application/gzip":             true,
	"application/x-rar-compressed": true, "application/wasm": true, "application/ogg": true,
	"application/vnd.ms-fontobject": true,
}

// otherNames are synonyms of types that Sniff returns.
var otherNames = map[string]string{
	"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png", "image/x-ms-bmp": "image/bmp",
	"image/vnd.microsoft.icon": "image/x-icon",
	"image/x-portable-bitmap":  "image/x-portable-anymap", "image/x-portable-graymap": "image/x-portable-anymap",
	"image/x-portable-pixmap": "image/x-portable-anymap",
	"image/jpx":               "image/jp2", "image/j2c": "image/jp2", "application/x-pdf": "application/pdf",
	"application/x-gzip": "application/gzip", "application/x-zip-compressed": "application/zip",
	"application/xml": "text/xml", "application/xhtml+xml": "text/html", "text/json": "application/json",
	"application/rtf": "text/rtf",
	"audio/wav":       "audio/wave", "audio/x-wav": "audio/wave", "audio/vnd.wave": "audio/wave",
	"audio/mp3": "audio/mpeg", "audio/x-flac": "audio/flac", "video/x-msvideo": "video/avi",
	"application/vnd.rar": "application/x-rar-compressed", "application/x-rar": "application/x-rar-compressed",
	"application/x-sqlite3": "application/vnd.sqlite3",
}

// essence is a media type in lower case, without its parameters, by the name that Sniff uses.
func essence(media string) string {
	media, _, _ = strings.Cut(media, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	if name, ok := otherNames[media]; ok {
		return name
	}
	return media
}
