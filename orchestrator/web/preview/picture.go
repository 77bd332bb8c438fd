package preview

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"
	"io"
)

const (
	maxPixels  = 40_000_000
	maxHeader  = 4 << 20 // of a picture, before its pixels: what a camera tells is there
	maxDrawing = 4 << 20
)

// formats are the pictures that are shown, with their names.
var formats = map[string]string{
	"image/png": "a PNG", "image/jpeg": "a JPEG", "image/gif": "a GIF", "image/webp": "a WebP", svg: "an SVG",
}

// picture is the preview of a file whose first bytes are those of a format. A few bytes can ask a browser for all its
// memory, so the size is read first.
func picture(file io.ReaderAt, size int64, head []byte, kind string) Preview {
	if kind == svg {
		return drawing(head, size)
	}
	width, height := dimensions(io.NewSectionReader(file, 0, min(size, maxHeader)), head, kind)
	if width <= 0 || height <= 0 {
		return none("its header isn't " + formats[kind] + "'s")
	}
	if pixels := int64(width) * int64(height); pixels > maxPixels {
		const mega = 1_000_000
		return none(fmt.Sprintf("it has %d megapixels, more than %d", (pixels+mega-1)/mega, maxPixels/mega))
	}
	return Preview{Kind: Picture, MediaType: kind, Width: width, Height: height}
}

// dimensions reads the size of a picture from its header; 0 if that is damaged.
func dimensions(file io.Reader, head []byte, kind string) (width, height int) {
	decode := png.DecodeConfig
	switch kind {
	case "image/gif":
		return gifSize(head)
	case "image/webp":
		return webpSize(head)
	case "image/jpeg":
		decode = jpeg.DecodeConfig
	}
	config, err := decode(file)
	if err != nil {
		config = image.Config{}
	}
	return config.Width, config.Height
}

// gifSize is what a browser draws of a GIF: the canvas, or the first frame where that is larger. The package
// image/gif reads the canvas alone.
func gifSize(head []byte) (width, height int) {
	const screen, frame = 13, 9 // bytes of their descriptors
	if len(head) < screen {
		return 0, 0
	}
	width, height = at16(head, 6), at16(head, 8)
	rest := head[screen:]
	if flags := head[10]; flags&0x80 != 0 { // a table of colours
		rest = after(rest, 3<<(flags&7+1))
	}
	for len(rest) >= frame {
		switch rest[0] {
		case '!': // an extension: blocks that begin with their length
			for rest = after(rest, 2); len(rest) > 0 && rest[0] != 0; {
				rest = after(rest, 1+int(rest[0]))
			}
			rest = after(rest, 1)
		case ',':
			return max(width, at16(rest, 1)+at16(rest, 5)), max(height, at16(rest, 3)+at16(rest, 7))
		default:
			return 0, 0
		}
	}
	return 0, 0
}

func at16(b []byte, at int) int { return int(binary.LittleEndian.Uint16(b[at:])) }

func after(b []byte, n int) []byte { return b[min(n, len(b)):] }

// webpSize reads the size of the canvas (RFC 9649), to which a browser holds the frames.
func webpSize(head []byte) (width, height int) {
	const least, bits14, bits24 = 30, 1<<14 - 1, 1<<24 - 1
	if len(head) < least {
		return 0, 0
	}
	switch body := head[20:]; string(head[12:16]) {
	case "VP8X":
		return 1 + int(binary.LittleEndian.Uint32(body[4:])&bits24), 1 + int(binary.LittleEndian.Uint32(body[6:])>>8)
	case "VP8L":
		if size := int(binary.LittleEndian.Uint32(body[1:])); body[0] == 0x2f {
			return 1 + size&bits14, 1 + size>>14&bits14
		}
	case "VP8 ":
		if bytes.Equal(body[3:6], []byte("\x9d\x01\x2a")) {
			return at16(body, 6) & bits14, at16(body, 8) & bits14
		}
	}
	return 0, 0
}

// drawing is the preview of an SVG. In an <img> nothing of it runs, and nothing is loaded.
func drawing(head []byte, size int64) Preview {
	switch {
	case size > maxDrawing:
		return none(fmt.Sprintf("it is an SVG of more than %d MiB", maxDrawing>>20))
	case bytes.Contains(head, []byte("<!ENTITY")): // each may stand for many others
		return none("it is an SVG that declares entities")
	}
	return Preview{Kind: Drawing, MediaType: svg, Note: "Shown as a picture: nothing in it runs"}
}

// isSVG reports whether a document's root is that of an SVG, as browsers want it.
func isSVG(head []byte) bool {
	head = bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\uFEFF")))
	if !bytes.HasPrefix(head, []byte("<")) {
		return false
	}
	for decoder := xml.NewDecoder(bytes.NewReader(head)); ; {
		token, err := decoder.Token()
		if err != nil {
			return false
		}
		if root, ok := token.(xml.StartElement); ok {
			return root.Name == xml.Name{Space: "http://www.w3.org/2000/svg", Local: "svg"}
		}
	}
}
