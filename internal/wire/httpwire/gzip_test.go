package httpwire

import (
	"net/http"
	"testing"
)

func TestWhoTakesGzip(t *testing.T) {
	t.Parallel()
	for header, takes := range map[string]bool{
		"": false, "gzip": true, "br, gzip;q=0.5": true, "deflate , gzip ; q=1": true, "gzip;q=0": false, "gzip;q=0.000": false,
		"xgzip": false, "identity": false,
	} {
		if got := TakesGzip(&http.Request{Header: http.Header{"Accept-Encoding": {header}}}); got != takes {
			t.Errorf("%q: %v", header, got)
		}
	}
}
