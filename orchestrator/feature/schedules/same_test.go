package schedules

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/agent-on-demand/aod/api"
)

func TestASameScheduleMayBeWrittenInAnotherWay(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	spec := api.ScheduleSpec{Unit: "u", Every: "1h", Start: &start, Input: json.RawMessage(`{"b":1,"a":[1]}`)}
	files := []file{{"tables", "a.csv", 1, "ca97"}}
	there := storedSchedule{files: files, spec: api.ScheduleSpec{
		Unit: "u", Every: "60m", Start: new(start.In(time.FixedZone("", 3600))), Input: json.RawMessage(`{"a": [1], "b": 1}`), Missed: api.MissedLast,
		Grace: "60m", Overlap: api.OverlapSkip, Jitter: "0s", Timezone: "UTC", Metadata: map[string]string{},
	}}
	if !there.same(spec, files) {
		t.Errorf("%+v and %+v differ", plainSpec(there.spec), plainSpec(spec))
	}
	if none := (storedSchedule{spec: api.ScheduleSpec{Unit: "u"}}); !none.same(api.ScheduleSpec{Unit: "u", Input: json.RawMessage("{}")}, nil) {
		t.Error("an empty input isn't that of one that says none")
	}
	for name, other := range map[string][]file{
		"field": {{"table", "a.csv", 1, "ca97"}}, "name": {{"tables", "b.csv", 1, "ca97"}}, "content": {{"tables", "a.csv", 1, "ca98"}}, "number": nil,
	} {
		if there.same(spec, other) {
			t.Errorf("files of another %s are the same", name)
		}
	}
}

func TestASchedulesEveryFieldIsCompared(t *testing.T) {
	t.Parallel()
	specs := reflect.TypeFor[api.ScheduleSpec]()
	for field := range specs.Fields() {
		var other api.ScheduleSpec
		switch value := reflect.ValueOf(&other).Elem().FieldByIndex(field.Index); value.Interface().(type) {
		case json.RawMessage:
			other.Input = json.RawMessage(`{"a":1}`)
		case map[string]string:
			other.Metadata = map[string]string{"a": "b"}
		case *time.Time:
			value.Set(reflect.ValueOf(new(time.Now())))
		case bool:
			value.SetBool(true)
		case int:
			value.SetInt(7)
		default:
			value.SetString("7m")
		}
		if (storedSchedule{}).same(other, nil) {
			t.Errorf("%s isn't compared", field.Name)
		}
	}
}
