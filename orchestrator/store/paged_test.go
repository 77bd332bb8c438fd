package store

import (
	"bytes"
	"context"
	"fmt"
	"testing"
)

// sizedEvents are events with documents of so many KiB.
func sizedEvents(kib ...int) (all []Event) {
	for _, n := range kib {
		e := event("artifact")
		e.Data = append(append([]byte{'"'}, bytes.Repeat([]byte("x"), n<<10)...), '"')
		all = append(all, e)
	}
	return all
}

func TestAPageOfLargeEventsEndsByItsBytes(t *testing.T) {
	t.Parallel()
	s := open(t)
	r := aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}, sizedEvents(100, 100, 100, 100, 1, 5000, 1, 1)...))
	told := func(ctx context.Context, run string, after int64, limit int) ([]Event, error) {
		return s.Events.Told(ctx, run, "artifact", after, limit)
	}
	for name, read := range map[string]func(context.Context, string, int64, int) ([]Event, error){"events": s.Events.List, "of a type": told} {
		for limit, want := range map[int]string{200: "1-3+ 4-6+ 7-8 ", 2: "1-2+ 3-4+ 5-6+ 7-8+ "} {
			got := ""
			for after := int64(0); ; {
				page, err := read(t.Context(), r.ID, after, limit)
				must(t, err)
				if len(page) == 0 {
					break
				}
				got += fmt.Sprintf("%d-", after+1)
				after = page[len(page)-1].Seq
				got += fmt.Sprint(after)
				if Full(page, limit) {
					got += "+"
				}
				got += " "
			}
			if got != want {
				t.Errorf("%s, %d at most: pages %q, not %q", name, limit, got, want)
			}
		}
	}
}

func TestAListOfRunsWithLargeRecordsEndsByItsBytes(t *testing.T) {
	t.Parallel()
	s := open(t)
	for n := range 7 {
		r := aRun(n)
		r.Record = append(append([]byte(`{"x":"`), bytes.Repeat([]byte("x"), 2<<20)...), `"}`...)
		must(t, s.Runs.Insert(t.Context(), r, Key{}))
	}
	var sizes []int
	seen := map[string]bool{}
	for f := (Filter{Limit: 5}); ; {
		page, err := s.Runs.List(t.Context(), f)
		must(t, err)
		sizes = append(sizes, len(page.Runs))
		for _, r := range page.Runs {
			seen[r.ID] = true
		}
		if f.Cursor = page.Next; f.Cursor == "" {
			break
		}
	}
	if fmt.Sprint(sizes) != "[2 2 2 1]" || len(seen) != 7 {
		t.Errorf("pages of %v runs, %d in all", sizes, len(seen))
	}
}

func TestTheLastEvent(t *testing.T) {
	t.Parallel()
	s := open(t)
	r := aRun(1)
	must(t, s.Runs.Insert(t.Context(), r, Key{}, event("state"), event("end")))
	if last, err := s.Events.Last(t.Context(), r.ID); err != nil || last.Seq != 2 || last.Type != "end" {
		t.Errorf("%+v, %v", last, err)
	}
	if none, err := s.Events.Last(t.Context(), aRun(2).ID); err != nil || none.Seq != 0 {
		t.Errorf("of no run: %+v, %v", none, err)
	}
}
