package httpapi

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

const (
	mcpHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`
	mcpTakes = "Accept: application/json, text/event-stream"
)

func TestASessionOfMCP(t *testing.T) {
	s := newServer(t, nil)
	opened := s.do("POST", "/mcp", mcpHello, mcpTakes).wants(t, 200)
	session := "Mcp-Session-Id: " + opened.Header.Get("Mcp-Session-Id")
	if !strings.Contains(opened.body, `"name":"aod"`) || opened.Header.Get("Cache-Control") == "" {
		t.Errorf("%s %v", opened.body, opened.Header)
	}
	s.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, mcpTakes, session).wants(t, 202)
	if list := s.do("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, mcpTakes, session).wants(t, 200); !strings.Contains(list.body, `"tools":[]`) {
		t.Error(list.body)
	}
	stream, err := http.DefaultClient.Do(s.request("GET", "/mcp", "", mcpTakes, session))
	must(t, err)
	if line, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || line != ": ok\n" {
		t.Errorf("%q %v", line, err)
	}
	stream.Body.Close()
	s.do("DELETE", "/mcp", "", session).wants(t, 204)
	if after := s.do("POST", "/mcp", `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`, mcpTakes, session); after.StatusCode != 404 {
		t.Errorf("after its end: %d", after.StatusCode)
	}
}

func TestTheRulesOfTheAPIHoldForMCP(t *testing.T) {
	s := newServer(t, func(o *Options) { o.Origins = []string{"https://ui.example"} })
	s.do("POST", "/mcp", mcpHello, mcpTakes, "Authorization: -").wants(t, 401)
	s.do("POST", "/mcp", mcpHello, mcpTakes, "Authorization: Bearer wrong").wants(t, 401)
	s.do("POST", "/mcp", mcpHello, mcpTakes, "Host: evil.example").wants(t, 403)
	s.do("POST", "/mcp", mcpHello, mcpTakes, "Origin: https://evil.example").wants(t, 403)
	asked := s.do("OPTIONS", "/mcp", "", "Origin: https://ui.example", "Access-Control-Request-Method: DELETE").wants(t, 204)
	if !strings.Contains(asked.Header.Get("Access-Control-Allow-Headers"), "Mcp-Session-Id") || !strings.Contains(asked.Header.Get("Access-Control-Allow-Methods"), "DELETE") {
		t.Error(asked.Header)
	}
}
