package preview

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"image"
	"image/color/palette"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/agent-on-demand/aod/internal/testing/fuzzbound"
)

// of is the preview of a file of these bytes.
func of(content, name string) Preview {
	return Of(strings.NewReader(content), name, int64(len(content)))
}

func encoded(t testing.TB, encode func(io.Writer, image.Image) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, image.NewPaletted(image.Rect(0, 0, 3, 2), palette.Plan9)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func gifOf(t testing.TB) string {
	return encoded(t, func(w io.Writer, m image.Image) error { return gif.Encode(w, m, nil) })
}

func jpegOf(t testing.TB) string {
	return encoded(t, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) })
}

// pngHeader is that of a PNG of a size, and nothing more.
func pngHeader(width, height uint32) string {
	chunk := append([]byte("IHDR"), make([]byte, 13)...)
	binary.BigEndian.PutUint32(chunk[4:], width)
	binary.BigEndian.PutUint32(chunk[8:], height)
	copy(chunk[12:], "\x08\x06")
	whole := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0d"), chunk...)
	return string(binary.BigEndian.AppendUint32(whole, crc32.ChecksumIEEE(chunk)))
}

func webpOf(chunk, body string) string {
	return "RIFF\x40\x00\x00\x00WEBP" + chunk + "\x20\x00\x00\x00" + body + strings.Repeat("\x00", 20)
}

// gifOfFrame is a GIF of a canvas of 1 x 1 whose first frame, behind a comment, has another size.
func gifOfFrame(size string) string {
	return "GIF89a\x01\x00\x01\x00\x80\x00\x00......!\xfe\x03abc\x01d\x00,\x00\x00\x00\x00" + size + "\x00\x02\x00;"
}

const (
	svgRoot = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">`
	svgBody = `<script>alert(1)</script><image href="https://example.org/a.png"/></svg>`
)

func TestAPictureIsShownByItsHeader(t *testing.T) {
	t.Parallel()
	shown := func(format string, width, height int) Preview {
		return Preview{Kind: Picture, MediaType: "image/" + format, Width: width, Height: height}
	}
	drawn := Preview{Kind: Drawing, MediaType: svg, Note: "Shown as a picture: nothing in it runs"}
	for name, c := range map[string]struct {
		content, name string
		want          Preview
	}{
		"a PNG":                         {encoded(t, png.Encode), "a.png", shown("png", 3, 2)},
		"a JPEG":                        {jpegOf(t), "a.jpg", shown("jpeg", 3, 2)},
		"a GIF":                         {gifOf(t), "a.gif", shown("gif", 3, 2)},
		"a lossy WebP":                  {webpOf("VP8 ", "...\x9d\x01\x2a\x03\x00\x02\x40"), "a.webp", shown("webp", 3, 2)},
		"a lossless WebP":               {webpOf("VP8L", "\x2f\x02\x40\x00\x10"), "a.webp", shown("webp", 3, 2)},
		"an animated WebP":              {webpOf("VP8X", "\x02\x00\x00\x00\x02\x00\x00\x01\x00\x00"), "a.webp", shown("webp", 3, 2)},
		"a JPEG that says it's a PNG":   {jpegOf(t), "a.png", shown("jpeg", 3, 2)},
		"a PNG that says it's a text":   {encoded(t, png.Encode), "a.txt", shown("png", 3, 2)},
		"a PNG that says it's HTML":     {encoded(t, png.Encode), "a.html", shown("png", 3, 2)},
		"a PNG without its pixels":      {pngHeader(3, 2), "a.png", shown("png", 3, 2)},
		"a PNG of 40 megapixels":        {pngHeader(8000, 5000), "a.png", shown("png", 8000, 5000)},
		"a GIF with a page behind":      {gifOf(t) + "<script>alert(1)</script>", "a.html", shown("gif", 3, 2)},
		"a GIF that is a page":          {"GIF89a/*<script>alert(1)</script>*/=1", "a.gif", none("its header isn't a GIF's")},
		"a bomb":                        {pngHeader(60000, 60000), "a.png", none("it has 3600 megapixels, more than 40")},
		"a little more than may be":     {pngHeader(8000, 5001), "a.png", none("it has 41 megapixels, more than 40")},
		"one beyond what a PNG can":     {pngHeader(1<<31, 1<<31), "a.png", none("its header isn't a PNG's")},
		"one of no size":                {pngHeader(0, 7), "a.png", none("its header isn't a PNG's")},
		"a GIF with a huge canvas":      {"GIF89a\xff\xff\xff\xff" + gifOf(t)[10:], "a.gif", none("it has 4295 megapixels, more than 40")},
		"a GIF with a small first one":  {gifOfFrame("\x01\x00\x01\x00"), "a.gif", shown("gif", 1, 1)},
		"a GIF with a huge first frame": {gifOfFrame("\xff\xff\xff\xff"), "a.gif", none("it has 4295 megapixels, more than 40")},
		"a GIF of its head alone":       {gifOf(t)[:13], "a.gif", none("its header isn't a GIF's")},
		"a GIF that is cut":             {"GIF89a\x01", "a.gif", none("its header isn't a GIF's")},
		"a huge WebP":                   {webpOf("VP8X", "\x02\x00\x00\x00\xff\xff\xff\xff\xff\xff"), "a.webp", none("it has 281474977 megapixels, more than 40")},
		"a WebP of another kind":        {webpOf("VP9 ", "...\x9d\x01\x2a\x03\x00\x02\x00"), "a.webp", none("its header isn't a WebP's")},
		"a WebP that is cut":            {webpOf("VP8L", "\x2f\x02\x40\x00\x10")[:24], "a.webp", none("its header isn't a WebP's")},
		"a PNG that is cut":             {pngHeader(3, 2)[:20], "a.png", none("its header isn't a PNG's")},
		"a text that says it's a PNG":   {"hello", "a.PNG", none("its header isn't a PNG's")},
		"a PDF that says it's a JPEG":   {"%PDF-1.7", "a.jpeg", none("its header isn't a JPEG's")},
		"a BMP":                         {"BM" + strings.Repeat("\x00", 60), "a.bmp", none("pictures of this format are only saved")},
		"an AVIF":                       {"\x00\x00\x00\x20ftypavif", "a.avif", none("pictures of this format are only saved")},
		"an SVG":                        {svgRoot + svgBody, "a.svg", drawn},
		"an SVG after much else":        {"\uFEFF<?xml version=\"1.0\"?>\n<!-- a chart --><!DOCTYPE svg>\n" + svgRoot + svgBody, "a.svg", drawn},
		"an SVG with a prefix":          {`<s:svg xmlns:s="http://www.w3.org/2000/svg"/>`, "a.txt", drawn},
		"an SVG that browsers don't see": {
			"<svg>" + svgBody, "a.svg", none("its header isn't an SVG's"),
		},
		"other XML":                     {`<a><svg xmlns="http://www.w3.org/2000/svg"/></a>`, "a.svg", none("its header isn't an SVG's")},
		"an SVG inside of HTML":         {"<html>" + svgRoot + svgBody + "</html>", "a.svg", none("its header isn't an SVG's")},
		"an SVG that multiplies itself": {`<!DOCTYPE svg [<!ENTITY a "&b;&b;">]>` + svgRoot + "&a;</svg>", "a.svg", none("it is an SVG that declares entities")},
		"a huge SVG":                    {svgRoot + strings.Repeat(" ", 4<<20) + "</svg>", "a.svg", none("it is an SVG of more than 4 MiB")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, of(c.content, c.name)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheReasonIsToldWhereNothingIsShown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ content, name, want string }{
		"nothing":                   {"", "a.txt", "it is empty"},
		"a PDF":                     {"%PDF-1.7\n", "report", "PDFs are only saved"},
		"a text called PDF":         {"hello", "a.pdf", "PDFs are only saved"},
		"HTML":                      {"<!DOCTYPE html><p>a", "a", "HTML is only saved"},
		"HTML that says it's a CSV": {"<script>alert(1)</script>", "a.csv", "HTML is only saved"},
		"HTML by its name":          {"hello <b>you</b>", "a.htm", "HTML is only saved"},
		"an archive":                {"PK\x03\x04" + strings.Repeat("\x00", 40), "a.docx", "archives are only saved"},
		"a packed file":             {"\x1f\x8b\x08", "a.gz", "archives are only saved"},
		"a sound":                   {"RIFF\x00\x00\x00\x00WAVEfmt ", "a.wav", "video and sound are only saved"},
		"a program":                 {"\x7fELF\x02\x01\x01\x00", "a.md", "it isn't text in UTF-8"},
		"Latin-1":                   {"caf\xe9 au lait", "a.txt", "it isn't text in UTF-8"},
		"UTF-16":                    {"\xff\xfeh\x00i\x00", "a.txt", "it isn't text in UTF-8"},
		"UTF-16 without its mark":   {"h\x00i\x00", "a.csv", "it isn't text in UTF-8"},
		"NUL far behind":            {strings.Repeat("a", 5000) + "\x00", "a.csv", "it isn't text in UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(none(c.want), of(c.content, c.name)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("a file that can't be read", func(t *testing.T) {
		t.Parallel()
		if diff := cmp.Diff(none("it can't be read"), Of(broken{}, "a.txt", 5)); diff != "" {
			t.Error(diff)
		}
	})
}

type broken struct{}

func (broken) ReadAt(p []byte, _ int64) (int, error) {
	return iotest.ErrReader(errors.New("the disk is broken")).Read(p)
}

// counting tells how far a file is read.
type counting struct{ furthest int64 }

func (c *counting) ReadAt(p []byte, at int64) (int, error) {
	c.furthest = max(c.furthest, at+int64(len(p)))
	for i := range p {
		p[i] = "\xff\xd8\xff\xe1\xff\xff"[(at+int64(i))%6] // a JPEG of large segments without an end
		if at+int64(i) > 5 {
			p[i] = 0xff
		}
	}
	return len(p), nil
}

func TestAFileIsReadUpToABound(t *testing.T) {
	t.Parallel()
	endless := &counting{}
	if p := Of(endless, "a.jpg", 1<<50); p.Kind != None || endless.furthest > maxHeader {
		t.Errorf("%d bytes are read: %+v", endless.furthest, p)
	}
	text := "é" + strings.Repeat("日", 200_000)
	p := of(text, "a.txt")
	if p.Kind != Text || len(p.Text) > maxHead || len(p.Text) < maxHead-3 || !strings.HasPrefix(text, p.Text) || p.Note != "the first 256 KiB" {
		t.Errorf("%d bytes of %q, %q", len(p.Text), p.Kind, p.Note)
	}
	if p := of(text[:maxHead], "a.txt"); p.Kind != None { // a part of a character at its end
		t.Errorf("%+v", p)
	}
	if p := of(strings.Repeat("a", maxHead), "a.txt"); len(p.Text) != maxHead || p.Note != "" {
		t.Errorf("%d bytes, %q", len(p.Text), p.Note)
	}
	if p := Of(strings.NewReader("short"), "a.txt", 1<<40); p.Text != "short" {
		t.Errorf("%+v", p)
	}
	if p := Of(strings.NewReader("short"), "a.txt", -1); p.Reason != "it is empty" {
		t.Errorf("%+v", p)
	}
}

func FuzzOf(f *testing.F) {
	for _, seed := range []string{
		encoded(f, png.Encode), jpegOf(f), gifOf(f), gifOfFrame("\xff\xff\x01\x00"), webpOf("VP8L", "\x2f\x02\x40\x00\x10"),
		svgRoot + svgBody, "a,b\n1,\"2\n", "{\"a\":[1,\"\u202e\"]}", "<p>", "%PDF-", "\xff\xfea", "a\tb\n\n1",
	} {
		for _, name := range []string{"a.png", "a.csv", "a.json", "a.md"} {
			f.Add([]byte(seed), name)
		}
	}
	fuzzbound.Run(f, func(t *testing.T, content []byte, name string) {
		p := Of(bytes.NewReader(content), name, int64(len(content)))
		if (p.Kind == None) != (p.Reason != "") || (p.Kind == Sheet) != (p.Table != nil) {
			t.Fatalf("%+v", p)
		}
		if p.Kind == Picture && (p.Width < 1 || p.Height < 1 || p.Width*p.Height > maxPixels || !strings.HasPrefix(p.MediaType, "image/")) {
			t.Fatalf("%+v", p)
		}
		shown := []string{p.Text, p.Note, p.Reason}
		if table := p.Table; table != nil {
			for _, row := range append(table.Rows, table.Head) {
				shown = append(shown, row...)
				if row != nil && len(row) != len(table.Numbers) {
					t.Fatalf("a row of %d cells among %d columns", len(row), len(table.Numbers))
				}
			}
			if len(table.Rows) > maxRows || len(table.Rows) > table.AllRows || len(table.Numbers) > maxColumns {
				t.Fatalf("%d of %d rows, %d columns", len(table.Rows), table.AllRows, len(table.Numbers))
			}
		}
		for _, text := range shown {
			if len(text) > maxIndented*3 || !isHarmless(text, "\n\t") {
				t.Fatalf("%d bytes: %.300q", len(text), text)
			}
		}
	})
}

// isHarmless reports whether a text has no control characters but those, and none that turn it around.
func isHarmless(text, but string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.Is(unicode.Bidi_Control, r) || unicode.IsControl(r) && !strings.ContainsRune(but, r)
	})
}

func Example() {
	p := of("month,late\nMay,12\nJune,9\n", "crossings.csv")
	fmt.Println(p.Kind, p.Table.Head, p.Table.Numbers, p.Note)
	// Output: table [month late] [false true] 2 rows, 2 columns
}
