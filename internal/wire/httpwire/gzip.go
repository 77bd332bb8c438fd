package httpwire

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"sync"
)

// TakesGzip reports whether a client takes compressed answers.
func TakesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if name == "gzip" {
			return strings.Trim(weight, "q=0.") != "" || weight == ""
		}
	}
	return false
}

// compressors are kept: a new one takes longer than most bodies.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(nil) }}

// Gzip compresses a body, and says so in the header of its answer.
func Gzip(header http.Header, body []byte) []byte {
	header.Set("Content-Encoding", "gzip")
	var small bytes.Buffer
	zip := compressors.Get().(*gzip.Writer)
	defer compressors.Put(zip)
	zip.Reset(&small)
	_, _ = zip.Write(body) // into memory
	_ = zip.Close()
	return small.Bytes()
}
