package httpapi

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestEveryListWithALimitTakesACursor(t *testing.T) {
	t.Parallel()
	lists := 0
	for path, operations := range theDocument().Paths {
		var names []string
		for _, p := range operations["get"].Parameters {
			names = append(names, p.Name, strings.ToLower(strings.TrimPrefix(p.Ref, "#/components/parameters/")))
		}
		if path == "/v1/runs/counts" || !slices.Contains(names, "limit") {
			continue
		}
		if lists++; !slices.Contains(names, "cursor") {
			t.Errorf("%s takes no cursor", path)
		}
	}
	if lists < 12 {
		t.Errorf("there are %d lists", lists)
	}
}

func TestListsAreReadPageByPage(t *testing.T) {
	t.Parallel()
	s := newServer(t, nil)
	s.addSizer()
	for _, name := range []string{"a", "b", "c"} {
		s.do("PUT", "/v1/schedules/"+name, `{"unit":"actor","every":"1h"}`).wants(t, 201)
	}
	run := s.run(`{"do":"files","say":"x"}`).ID
	for _, path := range []string{"/v1/schedules", "/v1/units", "/v1/runs/" + run + "/files", "/v1/runs"} {
		key := path[strings.LastIndex(path, "/")+1:]
		whole, _ := s.page(path, key)
		var read []any
		cursor := ""
		for {
			part, next := s.page(path+"?limit=1"+cursor, key)
			read = append(read, part...)
			if len(part) != 1 || next == nil || len(read) > len(whole) {
				break
			}
			cursor = "&cursor=" + url.QueryEscape(fmt.Sprint(next))
		}
		if fmt.Sprint(read) != fmt.Sprint(whole) || len(whole) == 0 {
			t.Errorf("%s: in parts it is %v, and not %v", path, read, whole)
		}
	}
	_, next := s.page("/v1/schedules?limit=2", "schedules")
	if rest, last := s.page(fmt.Sprintf("/v1/schedules?after=%v", next), "schedules"); len(rest) != 1 || last != nil {
		t.Errorf("after %v are %v", next, rest)
	}
	s.do("GET", "/v1/schedules?after=1&cursor=1", "").wants(t, 400)
	s.do("GET", "/v1/schedules?cursor=a", "").wants(t, 400)
	s.do("GET", "/v1/units?cursor=gone", "").wants(t, 400)
}

// page reads a page of a list, and the cursor of the next.
func (s *server) page(path, key string) (elements []any, next any) {
	s.t.Helper()
	var body map[string]any
	numbers := json.NewDecoder(strings.NewReader(s.do("GET", path, "").wants(s.t, 200).body))
	numbers.UseNumber()
	must(s.t, numbers.Decode(&body))
	elements, _ = body[key].([]any)
	return elements, body["next"]
}
