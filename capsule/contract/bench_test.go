package contract

import (
	"strings"
	"testing"
)

const typical = `{"input":{"type":"object","properties":{
	"title":{"type":"string","maxLength":200},"count":{"type":"int","minimum":0},"document":{"type":"string","format":"file_path"},
	"options":{"$ref":"#/definitions/options"},"rows":{"type":"list","items":{"type":"dict","properties":{"id":{"type":"int"},"name":{"type":"string"},"price":{"type":"float"}},"required":["id","name"]}}},
	"required":["title"],"additionalProperties":false},
	"output":{"type":"object","properties":{"summary":{"type":"string"}}},
	"definitions":{"options":{"type":"dict","properties":{"mode":{"enum":["fast","good"]},"when":{"type":"string","format":"date-time"}}}}}`

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if contract, found := Parse([]byte(typical)); contract == nil {
			b.Fatal(found)
		}
	}
}

// megabyte is a payload of just under 1 MiB that fits the typical contract.
func megabyte() []byte {
	row := `{"id":12345,"name":"a product with a name","price":12.5},`
	return []byte(`{"title":"t","rows":[` + strings.TrimSuffix(strings.Repeat(row, (1<<20-100)/len(row)), ",") + `]}`)
}

func BenchmarkDecode1MiB(b *testing.B) {
	raw := megabyte()
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := Decode(raw, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate1MiB(b *testing.B) {
	contract, _ := Parse([]byte(typical))
	p := payload(b, string(megabyte()))
	for b.Loop() {
		if found := contract.Input.Validate(p); len(found) > 0 {
			b.Fatal(found[0])
		}
	}
}

func BenchmarkValidateSmall(b *testing.B) {
	contract, _ := Parse([]byte(typical))
	p := payload(b, `{"title":"t","count":3,"options":{"mode":"fast"}}`)
	for b.Loop() {
		if found := contract.Input.Validate(p); len(found) > 0 {
			b.Fatal(found[0])
		}
	}
}

func BenchmarkFileRefs1MiB(b *testing.B) {
	contract, _ := Parse([]byte(typical))
	p := payload(b, string(megabyte()))
	for b.Loop() {
		contract.Input.FileRefs(p)
	}
}
