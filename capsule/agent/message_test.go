package agent

import (
	"runtime"
	"strings"
	"testing"
)

func TestAMessageTakesNoLargeMultipleOfItsBytes(t *testing.T) {
	if _, err := decode([]byte("[" + strings.Repeat("0,", maxValues-2) + "0]")); err != nil {
		t.Error(err)
	}
	hostile := []byte("[" + strings.Repeat(`{"a":0},`, MaxMessage/8-1) + "0]")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := decode(hostile)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; err == nil || took > 10*MaxMessage {
		t.Errorf("%v; it took %d bytes", err, took)
	}
}
