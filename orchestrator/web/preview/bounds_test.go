package preview

import (
	"encoding/binary"
	"hash/crc32"
	"io"
	"runtime"
	"strings"
	"testing"
)

// repeated is a file of many times the same, behind a beginning.
type repeated struct {
	head, rest string
	size       int64
}

func (f repeated) ReadAt(p []byte, at int64) (n int, err error) {
	for ; n < len(p) && at < f.size; at++ {
		if at < int64(len(f.head)) {
			p[n] = f.head[at]
		} else {
			p[n] = f.rest[(at-int64(len(f.head)))%int64(len(f.rest))]
		}
		n++
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
}

// pngChunk is a chunk of a PNG.
func pngChunk(kind, data string) string {
	chunk := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	chunk = append(append(chunk, kind...), data...)
	return string(binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(chunk[4:])))
}

// Whatever a file is, little memory shows it.
//
//nolint:paralleltest // others would allocate as well
func TestLittleMemoryShowsAnyFile(t *testing.T) {
	const (
		large = 1 << 30
		most  = 64 << 20
		frame = "!\xf9\x04\x00\x01\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00"
	)
	for name, c := range map[string]struct {
		file repeated
		name string
		kind Kind
	}{
		"a table of a million columns":       {repeated{"", "1,", 2_000_000}, "a.csv", Text},
		"a table of 130,000 columns":         {repeated{"a,b\n", "1,", 2_000_000}, "a.csv", Sheet},
		"a table of rows of a cell":          {repeated{"", "1\n", large}, "a.csv", Sheet},
		"a table of quotes":                  {repeated{"a\n\"", `""`, large}, "a.csv", Sheet},
		"a table of one column, and wide":    {repeated{"a\n", strings.Repeat(",", 1000) + "\n", large}, "a.tsv", Sheet},
		"brackets a million deep":            {repeated{"", "[", 1_000_000}, "a.json", Text},
		"brackets as many as are read":       {repeated{"", "[", maxHead}, "a.json", Text},
		"objects as many as are read":        {repeated{"", `{"":`, maxHead}, "a.json", Text},
		"a line of Markdown of 100 MB":       {repeated{"", "*_`[<", 100_000_000}, "a.md", Text},
		"a line of text of 1 GiB":            {repeated{"", "a", large}, "a.txt", Text},
		"a text of characters to take out":   {repeated{"a", "\u202e\x1b[1m", large}, "a.txt", Text},
		"a text of lines without anything":   {repeated{"", "\r\n", large}, "a.txt", Text},
		"a PNG of 60,000 x 60,000":           {repeated{pngHeader(60_000, 60_000), "\x00", large}, "a.png", None},
		"a PNG of chunks before its pixels":  {repeated{pngHeader(100, 100), pngChunk("tEXt", "a"), large}, "a.png", Picture},
		"a GIF of 60,000 x 60,000":           {repeated{"GIF89a\x60\xea\x60\xea\x00\x00\x00", frame, large}, "a.gif", None},
		"a GIF of 100,000 frames":            {repeated{"GIF89a\x01\x00\x01\x00\x00\x00\x00", frame, int64(13 + 100_000*len(frame))}, "a.gif", Picture},
		"a GIF of extensions alone":          {repeated{"GIF89a\x01\x00\x01\x00\x00\x00\x00", "!\xfe\x01a\x00", large}, "a.gif", None},
		"a WebP of 2^24 x 2^24":              {repeated{webpOf("VP8X", "\x02\x00\x00\x00\xff\xff\xff\xff\xff\xff"), "ANMF", large}, "a.webp", None},
		"a JPEG of segments without an end":  {repeated{"\xff\xd8\xff\xe0\x00\x02", "\xff\xe0\x00\x02", large}, "a.jpg", None},
		"an SVG within SVGs, many deep":      {repeated{svgRoot, "<g>", maxDrawing}, "a.svg", Drawing},
		"an SVG behind comments":             {repeated{"", "<!-- -->", large}, "a.svg", None},
		"a document of attributes":           {repeated{"<svg ", "a='b' ", large}, "a.svg", None},
		"a document type without an end":     {repeated{"<!DOCTYPE svg [", "<!ENTITY a 'b'>", large}, "a.svg", None},
		"HTML of elements within each other": {repeated{"<html>", "<b>", large}, "a.html", None},
		"zeros":                              {repeated{"", "\x00", large}, "a", None},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p := Of(c.file, c.name, c.file.size)
			runtime.ReadMemStats(&after)
			took := after.TotalAlloc - before.TotalAlloc
			if t.Logf("%d KiB for %d bytes: %s %s", took>>10, c.file.size, p.Note, p.Reason); took > most {
				t.Errorf("%d bytes were allocated", took)
			}
			if p.Kind != c.kind || len(p.Text) > 3*maxIndented {
				t.Errorf("%q of %d bytes: %s %s", p.Kind, len(p.Text), p.Note, p.Reason)
			}
		})
	}
}
