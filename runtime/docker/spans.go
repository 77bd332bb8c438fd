package docker

import (
	"net/http"
	"slices"
	"strings"

	"github.com/docker/docker/client"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
)

// withPlainSpans names the spans of the client without ids: "POST /containers/{}/start".
func withPlainSpans() client.Opt {
	return client.WithTraceOptions(otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string {
		return r.Method + " " + withoutIDs(r.URL.Path)
	}))
}

// nouns and verbs are the words of the engine's addresses. All else in one is a name, an id or a version.
var (
	nouns = []string{
		"_ping", "auth", "build", "containers", "events", "exec", "images", "info", "networks", "session", "system",
		"version", "volumes",
	}
	verbs = []string{
		"archive", "attach", "create", "df", "exec", "get", "history", "json", "kill", "load", "logs", "pause", "prune",
		"push", "rename", "resize", "restart", "search", "start", "stats", "stop", "tag", "top", "unpause", "update",
		"wait",
	}
)

// withoutIDs is an address of the engine's with {} in the place of names and ids. Names of images have slashes.
func withoutIDs(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if strings.HasPrefix(parts[0], "v1.") {
		parts = parts[1:]
	}
	plain := ""
	for i, part := range parts {
		switch {
		case i == 0 && slices.Contains(nouns, part), i == len(parts)-1 && slices.Contains(verbs, part):
			plain += "/" + part
		case !strings.HasSuffix(plain, "/{}"):
			plain += "/{}"
		}
	}
	return plain
}
