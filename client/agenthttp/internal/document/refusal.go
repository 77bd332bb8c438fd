package document

// ReadRefusal reads the body of an answer with an error status. The refusal may stand alone
// or in a member "detail".
func ReadRefusal(raw []byte) (f Fields, why string) {
	f, err := Read(raw)
	if err != nil {
		return nil, "the body " + err.Error()
	}
	if inner := f.Object("detail"); inner != nil && !f.Has("request_id") {
		if f, err = Read(inner); err != nil {
			return nil, "the body's detail " + err.Error()
		}
	}
	return f, ""
}

// JudgeRefusal says what a refusal lacks of the contract's shape.
func JudgeRefusal(f Fields, asked Asked) string {
	switch why := EchoesID(f, asked); {
	case why != "":
		return why
	case !f.Is("ok", false):
		return "ok is not false"
	case f.Object("outputs") == nil:
		return "outputs is missing, null or no object"
	case !f.Has("warnings"):
		return "warnings is missing or null"
	}
	return ""
}
