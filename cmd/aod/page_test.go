package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/agent-on-demand/aod/client"
)

// What `aod ui` prints signs a browser in, once.
func TestTheAddressOfThePageSignsInOnce(t *testing.T) {
	t.Parallel()
	s := newInside(t)
	s.start()
	code, stdout, stderr := command(t, t.Context(), "ui", "--print", "--server", s.client.Server(), "--data", s.data)
	address := strings.TrimSpace(stdout)
	if code != 0 || !strings.HasPrefix(address, s.client.Server()+"/ui/login?code=") {
		t.Fatalf("code %d, %q, %q", code, stdout, stderr)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		client http.Client
		path   string
		status int
	}{
		{http.Client{Jar: jar}, "/ui/runs", http.StatusOK},
		{http.Client{}, "/ui/login", http.StatusUnauthorized},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != c.status || answer.Request.URL.Path != c.path {
			t.Errorf("it leads to %s: %s", answer.Request.URL.Path, answer.Status)
		}
	}
}

// signedIn is a browser on the server's page.
func (s *server) signedIn() *http.Client {
	s.t.Helper()
	code, address, told := command(s.t, s.t.Context(), "ui", "--print", "--server", s.client.Server(), "--data", s.data)
	jar, err := cookiejar.New(nil)
	if err != nil || code != 0 {
		s.t.Fatalf("code %d, %s, %v", code, told, err)
	}
	browser := &http.Client{Jar: jar}
	_ = s.looks(browser, strings.TrimSpace(address)).Close()
	return browser
}

// looks opens something of the page.
func (s *server) looks(browser *http.Client, address string) io.ReadCloser {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := browser.Do(request)
	if err != nil || answer.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %+v %v", address, answer, err)
	}
	s.t.Cleanup(func() { _ = answer.Body.Close() })
	return answer.Body
}

// readTo reads until there is a text.
func readTo(t *testing.T, from io.Reader, text string) {
	t.Helper()
	var all []byte
	for part := make([]byte, 4<<10); !strings.Contains(string(all), text); {
		n, err := from.Read(part)
		if all = append(all, part[:n]...); err != nil && !strings.Contains(string(all), text) {
			t.Fatalf("it ends without %q: %v\n%s", text, err, all)
		}
	}
}

// What is said in a turn stands on its page, and comes there by itself, while the turn goes on.
func TestThePageShowsWhatIsSaidAtTheMoment(t *testing.T) {
	t.Parallel()
	s, session, may := newChatty(t)
	defer s.endSession(session)
	browser := s.signedIn()
	live := s.looks(browser, s.url()+"/ui/live?page=chat/"+session)
	c := s.chats("chat", session)
	c.types("slow\n")
	readTo(t, live, "the first half,")
	readTo(t, s.looks(browser, s.url()+"/ui/chat/"+session), "the first half,")
	close(may)
	readTo(t, live, "the second half")
	if code := c.leaves(); code != 0 {
		t.Errorf("it ended with %d", code)
	}
}

// The same of a model, in a run that nobody else follows.
func TestThePageShowsWhatAModelWrites(t *testing.T) {
	t.Parallel()
	provider := newTeller(t)
	s := newInside(t)
	s.addThoughtful("thoughtful")
	s.asksSmall(provider.URL, "secret", "")
	s.start()
	browser := s.signedIn()
	record, err := s.submit(t.Context(), client.Submission{Unit: "thoughtful", Input: []byte(`{"message":"why?"}`), Context: "chat"})
	if err != nil {
		t.Fatal(err)
	}
	live := s.looks(browser, s.url()+"/ui/live?page=runs/"+record.ID)
	readTo(t, live, "It burnt down in ")
	readTo(t, s.looks(browser, s.url()+"/ui/runs/"+record.ID), "Says at the moment")
	talk := s.looks(browser, s.url()+"/ui/live?page=chat/chat") // of whose runs it is one
	readTo(t, talk, "It burnt down in ")
	close(provider.may)
	readTo(t, live, "Nobody knows why.")
	readTo(t, talk, "Nobody knows why.")
}

// Built with the tag no_ui the program has nothing of the page.
func TestAProgramCanBeBuiltWithoutThePage(t *testing.T) {
	t.Parallel()
	const page = "github.com/agent-on-demand/aod/orchestrator/web"
	for tags, with := range map[string]bool{"": true, "no_ui": false} {
		// To export is to compile: once more as the program is built, and without linking.
		list := exec.CommandContext(t.Context(), "go", "list", "-export", "-trimpath", "-deps", "-tags", tags, ".")
		list.Env = append(os.Environ(), "CGO_ENABLED=0")
		if all, err := list.Output(); err != nil || strings.Contains(string(all), page) != with {
			t.Errorf("tags %q: %v, %s", tags, err, all)
		}
	}
}
