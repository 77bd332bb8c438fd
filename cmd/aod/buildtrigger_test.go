package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/runtime"
	"github.com/agent-on-demand/aod/runtime/docker/dockertest"
)

func TestABaseImageMayNotFetch(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int32
	private := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		_, _ = io.WriteString(w, "what only this machine can read")
	}))
	defer private.Close()
	s := newServer(t, "--retries", "0")
	base := "aod.test/trigger:" + strconv.FormatInt(time.Now().UnixNano(), 10)
	context := uploadOf(t, map[string]string{"Dockerfile": "FROM " + dockertest.Image + "\nONBUILD ADD " + private.URL + "/secret /secret\n"}).Bytes()
	spec := runtime.BuildSpec{Tags: []string{base}, WriteContext: func(w io.Writer) error {
		_, err := w.Write(context)
		return err
	}}
	if _, err := s.engine.Build(t.Context(), spec, func(runtime.BuildEvent) {}); err != nil {
		t.Fatal(err)
	}
	s.images = append(s.images, base)
	for _, name := range []string{"named", "variable"} {
		s.addWorker(name, "")
	}
	write(t, "FROM "+base+"\n"+unique()+"CMD [\"true\"]\n", s.units, "named", "Dockerfile")
	write(t, "ARG BASE="+base+"\nFROM ${BASE}\n"+unique()+"CMD [\"true\"]\n", s.units, "variable", "Dockerfile")
	s.start()
	for _, name := range []string{"named", "variable"} {
		record := s.await(s.mustSubmit(name, work{}))
		if record.Outcome != api.SystemError || record.Error.Kind != "forbidden" || !strings.Contains(record.Error.Message, "ONBUILD ADD") ||
			!strings.HasSuffix(record.Error.Hint, "unit."+name+".policy.build_fetch: true") {
			t.Errorf("%s: %s, %+v", name, record.Outcome, record.Error)
		}
	}
	if fetched.Load() > 0 {
		t.Error("the engine fetched what the base image names")
	}
}
