package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/agent-on-demand/aod/api/fault"
	"github.com/agent-on-demand/aod/internal/wire/httpwire"
)

//go:embed static
var staticFiles embed.FS

// asset is a file that pages load. Its name has its digest, so that browsers keep it for ever.
type asset struct {
	media  string
	plain  []byte
	zipped []byte
}

// assets are the files by the names that browsers ask for, and those names by the files' own.
type assets struct {
	byPath map[string]asset
	paths  map[string]string
}

func newAssets() assets {
	all := assets{map[string]asset{}, map[string]string{}}
	files, err := staticFiles.ReadDir("static")
	if err != nil {
		panic(err) // they are in the program
	}
	slices.SortFunc(files, func(a, b fs.DirEntry) int { // the module that imports all others comes last
		switch entry {
		case a.Name():
			return 1
		case b.Name():
			return -1
		}
		return strings.Compare(a.Name(), b.Name())
	})
	for _, one := range files {
		content, err := staticFiles.ReadFile("static/" + one.Name())
		if err != nil {
			panic(err)
		}
		all.add(one.Name(), content)
	}
	return all
}

// entry is the module that pages load. It imports the others, which import nothing.
const entry = "page.js"

var media = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func (a assets) add(name string, content []byte) {
	for plain, at := range a.paths {
		content = bytes.ReplaceAll(content, []byte(`"./`+plain+`"`), []byte(`"./`+at+`"`))
	}
	sum := sha256.Sum256(content)
	ext := path.Ext(name)
	at := strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	a.byPath[at] = asset{media[ext], content, httpwire.Gzip(http.Header{}, content)}
	a.paths[name] = at
}

// path is where pages find a file, below /ui/.
func (a assets) path(name string) string { return "static/" + a.paths[name] }

func (a assets) serve(w http.ResponseWriter, r *request) error {
	found, ok := a.byPath[r.PathValue("name")]
	if !ok {
		return fault.New(fault.NotFound, "there is no such file").
			WithHint("load the page again: the server is a newer one")
	}
	header := w.Header()
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Content-Type", found.media)
	header.Set("Vary", "Accept-Encoding")
	content := found.plain
	if r.frame.zipped {
		header.Set("Content-Encoding", "gzip")
		content = found.zipped
	}
	_, err := w.Write(content)
	return err
}
