package check

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"strings"

	"github.com/agent-on-demand/aod/capsule/au"
)

// samples make a tiny input for each media type that needs no file.
var samples = map[string]func() []byte{
	"*/*":                      noFormat,
	"application/octet-stream": noFormat,
	"text/*":                   sampleText,
	"text/plain":               sampleText,
	"text/markdown":            sampleText,
	"text/csv":                 func() []byte { return []byte("name,count\nred,1\nblue,2\n") },
	"application/json":         func() []byte { return []byte("{\"name\": \"red\", \"count\": 1}\n") },
	"image/*":                  samplePNG,
	"image/png":                samplePNG,
	"image/jpeg":               sampleJPEG,
	"application/pdf":          samplePDF,
}

// sampleFor makes an input of the card's first media type that has a sample; nil if none
// has.
func sampleFor(card *au.Card) []byte {
	if card == nil {
		return nil
	}
	for _, media := range card.Inputs {
		kind, _, _ := strings.Cut(strings.ToLower(media.Type), ";")
		if sample, ok := samples[strings.TrimSpace(kind)]; ok {
			return sample()
		}
	}
	return nil
}

// noFormat returns bytes that begin as no format does, and aren't text.
func noFormat() []byte {
	raw := make([]byte, 1024)
	next := byte(0x9b)
	for i := range raw {
		raw[i] = next
		next += 37
	}
	return raw
}

func sampleText() []byte { return []byte("The quick brown fox jumps over the lazy dog.\n") }

// picture is black on white, without readable text.
func picture() image.Image {
	img := image.NewGray(image.Rect(0, 0, 120, 60))
	for i := range img.Pix {
		img.Pix[i] = 0xff
	}
	for y := 20; y < 40; y++ {
		for x := 20; x < 100; x++ {
			img.SetGray(x, y, color.Gray{Y: 0})
		}
	}
	return img
}

func samplePNG() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, picture()) // into memory
	return b.Bytes()
}

func sampleJPEG() []byte {
	var b bytes.Buffer
	_ = jpeg.Encode(&b, picture(), nil) // into memory
	return b.Bytes()
}

// samplePDF is a page with a line of text (ISO 32000-1, 7.5: header, body, cross-reference
// table, trailer).
func samplePDF() []byte {
	const text = "BT /F1 24 Tf 20 60 Td (Hello) Tj ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 120] /Contents 4 0 R /Resources << /Font << /F1 5 0 R " +
			">> >> >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	}
	b := bytes.NewBufferString("%PDF-1.4\n")
	var table strings.Builder
	fmt.Fprintf(&table, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, object := range objects {
		fmt.Fprintf(&table, "%010d 00000 n \n", b.Len())
		fmt.Fprintf(b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(b, "%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", table.String(), len(objects)+1,
		start)
	return b.Bytes()
}

// readBytes is about how much of the huge input is read at once.
const readBytes = 64 << 10

// huge repeats the sample, so that it begins as a valid input does.
func (e *examination) huge() io.Reader {
	block := e.Sample
	if len(block) == 0 {
		block = noFormat()
	}
	if len(block) < readBytes {
		block = bytes.Repeat(block, readBytes/len(block))
	}
	return io.LimitReader(&repeated{block: block}, hugeBytes)
}

// repeated reads the same bytes for ever.
type repeated struct {
	block []byte
	at    int
}

func (r *repeated) Read(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		copied := copy(b[n:], r.block[r.at:])
		n += copied
		r.at = (r.at + copied) % len(r.block)
	}
	return n, nil
}
