package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-on-demand/aod/api"
	"github.com/agent-on-demand/aod/client"
	"github.com/agent-on-demand/aod/fault"
	"github.com/agent-on-demand/aod/strictjson"
)

// changeOn says what is to become of a schedule of a server: unchanged or changed. A list of
// schedules is without their inputs.
func (w wantedSchedule) changeOn(ctx context.Context, server *client.Client) (string, error) {
	there, err := server.Schedule(ctx, w.name)
	if err != nil {
		return "", err
	}
	return w.change(there)
}

// change says what is to become of a schedule that is there: unchanged or changed.
func (w wantedSchedule) change(there api.Schedule) (string, error) {
	spec := w.spec
	if spec.Start == nil { // it began when it was made, and stays there
		spec.Start = there.Start
	}
	if !reflect.DeepEqual(plainSpec(spec), plainSpec(there.ScheduleSpec)) {
		return changed, nil
	}
	same, err := sameFiles(w.files, there.Files)
	if err != nil || !same {
		return changed, err
	}
	return unchanged, nil
}

// plainSpec is a specification with its defaults, in one of the ways in which it can be written.
func plainSpec(s api.ScheduleSpec) map[string]any {
	var input any
	decoder := json.NewDecoder(bytes.NewReader(s.Input))
	decoder.UseNumber()
	if decoder.Decode(&input) != nil {
		input = map[string]any{} // there is none
	}
	metadata := s.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	return map[string]any{
		"unit": s.Unit, "input": input, "metadata": metadata, "timeout": plainTime(s.Timeout), "ask": s.Ask, "note": s.Note,
		"cron": strings.Join(strings.Fields(s.Cron), " "), "timezone": cmp.Or(s.Timezone, "UTC"), "every": plainTime(s.Every), "at": s.At,
		"start": moment(s.Start), "until": moment(s.Until), "count": s.Count,
		"missed": cmp.Or(s.Missed, api.MissedLast), "grace": plainTime(cmp.Or(s.Grace, "1h")),
		"overlap": cmp.Or(s.Overlap, api.OverlapSkip), "jitter": plainTime(cmp.Or(s.Jitter, "0s")),
	}
}

// plainTime writes a duration in one way.
func plainTime(text string) string {
	if d, err := time.ParseDuration(text); err == nil {
		return d.String()
	}
	return text
}

func moment(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixNano()
}

// sameFiles compares files on this machine with those that a schedule has.
func sameFiles(mine []client.InputFile, there []api.File) (bool, error) {
	if len(mine) != len(there) {
		return false, nil
	}
	var want, have []string
	for _, f := range there {
		pointer := ""
		if f.Pointer != nil {
			pointer = *f.Pointer
		}
		have = append(have, fmt.Sprintf("%s %s %s", fieldAt(pointer), f.SHA256, path.Base(f.Name)))
	}
	for _, f := range mine {
		sum, err := fileSum(f.Path)
		if err != nil {
			return false, err
		}
		want = append(want, fmt.Sprintf("%s %s %s", f.Field, sum, filepath.Base(f.Path)))
	}
	slices.Sort(want)
	slices.Sort(have)
	return slices.Equal(want, have), nil
}

// fieldAt is the dotted path of the field that a pointer leads to, or into whose list it leads.
func fieldAt(pointer string) string {
	tokens := strictjson.Path(pointer)
	if n := len(tokens); n > 1 {
		if _, err := strconv.Atoi(tokens[n-1]); err == nil {
			tokens = tokens[:n-1]
		}
	}
	return strings.Join(tokens, ".")
}

func fileSum(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fault.Wrap(fault.Input, err, "the file %q can't be opened", name)
	}
	defer func() { _ = file.Close() }() // read only
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fault.Wrap(fault.Input, err, "the file %q can't be read", name)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
