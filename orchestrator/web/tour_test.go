package web_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/agent-on-demand/aod/internal/testing/programtest"
	"github.com/agent-on-demand/aod/internal/testing/testkit"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

const root = "../.." // of the project

// tourSteps are what the guide's tour has people do: `TEXT` into **FIELD**, `FILE` and `FILE` onto **FIELD**, **WHAT TO
// PRESS**; and what they see then: *TEXT*.
var tourSteps = regexp.MustCompile("((?:`[^`]+`(?:, | and )?)+) (into|onto) \\*\\*([^*]+)\\*\\*|\\*\\*([^*]+)\\*\\*|\\*([^*]+)\\*")

var codeSpan = regexp.MustCompile("`([^`]+)`")

// Whoever follows the tour of docs/page.md sees what it says. With AOD_PICTURES the README's picture is written, too.
func TestTheTourOfThePage(t *testing.T) {
	t.Parallel()
	dockertest.Require(t)
	raw, err := os.ReadFile(filepath.Join(root, "docs", "page.md"))
	must(t, err)
	_, tour, _ := strings.Cut(string(raw), "\n## A tour\n")
	tour, _, _ = strings.Cut(tour, "\n## ")
	found := regexp.MustCompile("(?s)^\n```sh\n(aod build [^\n]*)\n(aod serve [^\n]*) &\naod ui\n```\n(.*)").FindStringSubmatch(tour)
	if found == nil {
		t.Fatalf("the tour doesn't begin with a server: %s", tour)
	}
	b := tourist(t, found[1], found[2])
	steps := tourSteps.FindAllStringSubmatch(strings.Join(strings.Fields(found[3]), " "), -1)
	for _, m := range steps {
		values, how, field, press, seen := m[1], m[2], m[3], m[4], m[5]
		switch {
		case how == "into":
			b.do(chromedp.SetValue(b.named(field), codeSpan.FindStringSubmatch(values)[1]))
		case how == "onto":
			var files []string
			for _, name := range codeSpan.FindAllStringSubmatch(values, -1) {
				at, err := filepath.Abs(filepath.Join(root, "examples/capsules/research-brief/input", name[1]))
				must(t, err)
				files = append(files, at)
			}
			b.do(chromedp.SetUploadFiles(b.named(field), files))
		case press != "":
			b.do(chromedp.Click(b.named(press)))
		default:
			b.until("document.body.innerText.includes(" + strconv.Quote(seen) + ")")
		}
	}
	if len(steps) < 10 {
		t.Errorf("the tour has %d steps", len(steps))
	}
	if dir := os.Getenv("AOD_PICTURES"); dir != "" {
		must(t, os.MkdirAll(dir, 0o755))
		png, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(dir, "page.png"), png, 0o644))
	}
}

// tourist has signed in at a server. It is started by a line of the guide, after another one.
func tourist(t *testing.T, before, line string) *tab {
	t.Helper()
	dir, address := t.TempDir(), programtest.FreeAddress(t)
	program := filepath.Join(dir, "aod")
	must(t, programtest.Build(program))
	start := func(line string) *exec.Cmd {
		cmd := exec.Command("sh", "-c", "exec "+line)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "AOD_LISTEN="+address, "AOD_SERVER=",
			"AOD_DATA="+filepath.Join(dir, "data"), "AOD_TOKEN=", "AOD_TOKEN_FILE=", "AOD_MODELS=")
		return cmd
	}
	if said, err := start(before).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", before, err, said)
	}
	serve := start(line)
	log := &testkit.Log{}
	serve.Stderr = log
	must(t, serve.Start())
	t.Cleanup(func() {
		must(t, serve.Process.Signal(syscall.SIGTERM))
		if err := serve.Wait(); err != nil || t.Failed() {
			t.Errorf("the server ended with %v: %s", err, log)
		}
	})
	testkit.Eventually(t, "the server", func() bool {
		answer, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
	})
	printed, err := start("aod ui --print --server http://" + address).Output()
	must(t, err)
	p := &page{t: t, url: "http://" + address}
	b := openTab(theBrowser(t), t, p, chromedp.WithNewBrowserContext())
	b.wide(1280)
	b.open(strings.TrimPrefix(strings.TrimSpace(string(printed)), p.url))
	return b
}

// named is the control that people call so, when it is there.
func (b *tab) named(name string) chromedp.CSS {
	b.t.Helper()
	b.until(fmt.Sprintf(`((name) => {
		const is = (e) => e.checkVisibility() && !e.closest("[aria-hidden=true]") && [e.textContent, e.firstChild?.textContent].some((text) => text?.trim() === name)
		const all = (tags) => [...document.querySelectorAll(tags)].filter(is)
		const label = all("label, legend")[0]
		const found = label ? label.control ?? label.parentElement.querySelector("input[type=file]") : all("a, button, summary")[0]
		document.querySelector("[data-tour]")?.removeAttribute("data-tour")
		found?.setAttribute("data-tour", "")
		return !!found
	})(%q)`, name))
	return "[data-tour]"
}
