package config

// field is one of a row of a table that another package reads.
type field struct {
	name, doc string
	form      object
}

// rowsByName is the schema of a table whose rows have names.
func rowsByName(doc, names string, required []string, fields ...field) object {
	return object{
		{"description", doc},
		{"type", "object"},
		{"propertyNames", object{{"pattern", names}}},
		{"additionalProperties", append(object{{"type", "object"}, {"additionalProperties", false}, {"required", required}}, members(fields))},
	}
}

func members(fields []field) member {
	row := object{}
	for _, f := range fields {
		row = append(row, member{f.name, append(object{{"description", f.doc}}, f.form...)})
	}
	return member{"properties", row}
}

func text() object { return object{{"type", "string"}, {"minLength", 1}} }

func flagged() object { return object{{"type", "boolean"}} }

func oneOf(words ...string) object { return object{{"type", "string"}, {"enum", words}} }

func someOf(item object) object { return object{{"type", "array"}, {"minItems", 1}, {"items", item}} }

func upTo(most int) object { return object{{"type", "integer"}, {"minimum", 1}, {"maximum", most}} }

// upstreamsSchema says what package upstream reads.
func upstreamsSchema() object {
	return rowsByName("Services whose keys stay outside, by their names.", "^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?$", []string{"url"},
		field{"url", "Below which all lies that is asked of it.", text()},
		field{"plain_http", "Let the address be plain http, though it isn't loopback's.", flagged()},
		field{"secret", "The name of its key, a file where secrets are kept.", text()},
		field{"header", "The header that has the key; Authorization by default.", text()},
		field{"scheme", "Stands before the key; Bearer by default, nothing with a header.", text()},
		field{"methods", "Methods that are passed on; GET, HEAD and POST by default.", texts()},
		field{"paths", "Paths below url that are passed on, each with all below it; all by default.", texts()},
		field{"ca_file", "Certificates in PEM that its own is held against, instead of the system's.", text()},
	)
}

// providersSchema says what package catalog reads of those who answer for models.
func providersSchema() object {
	return rowsByName("Who answers for models, by their names.", "^[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?$", []string{"kind"},
		field{"kind", "What it is.", oneOf("openai", "anthropic", "compatible", "script")},
		field{"key", "The name of its key, a file where secrets are kept.", text()},
		field{"base_url", "The address that its dialects lie below; the vendor's own by default.", text()},
		field{"plain_http", "Let the address be plain http, though it isn't loopback's.", flagged()},
		field{"dialects", "What it speaks, where that isn't what its kind does.", someOf(oneOf("chat", "responses", "messages", "embeddings"))},
		field{"concurrency", "Requests at once; without it, nothing bounds them.", upTo(10_000)},
		field{"fields", "Whether all fields are passed on that AOD doesn't know; by default only those that a model allows, but to script.", oneOf("any", "known")},
		field{"stream_usage", "Ask for the usage of a stream; true by default.", flagged()},
		field{"answers", "The file with the answers of a script.", text()},
	)
}

// modelsSchema says what package catalog reads of models.
func modelsSchema() object {
	const mostTokens = 1_000_000_000
	amount := object{{"type", "number"}, {"minimum", 0}, {"maximum", 1_000_000}}
	price := object{{"type", "object"}, {"additionalProperties", false}, members([]field{
		{"input", "Of what is asked.", amount},
		{"cached", "Of what the provider had read before; as input by default.", amount},
		{"cache_write", "Of what the provider keeps to read it again; as input by default.", amount},
		{"output", "Of what is answered.", amount},
	})}
	return rowsByName("Models, by the names that units ask for.", "^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$", []string{"use"},
		field{
			"use", "PROVIDER/MODEL, by the provider's name for it; the first that answers is taken.",
			someOf(object{{"type", "string"}, {"pattern", "^[^/]+/."}, {"maxLength", 2048}}),
		},
		field{"order", "How use is asked: one after the other as listed, the cheapest first, or the first two at once.", oneOf("listed", "cheapest", "race")},
		field{"price", "What a million tokens cost; without it, nobody knows.", price},
		field{"prices", "What they cost at some of use, by PROVIDER/MODEL.", object{{"type", "object"}, {"additionalProperties", price}}},
		field{"max_output", "Tokens of an answer at most; by default 8192, or less where known models can't give that.", upTo(mostTokens)},
		field{"context", "Tokens that it can read, of the largest model in use; by default what is known of all in use.", upTo(mostTokens)},
		field{"rpm", "Requests a minute; without it, nothing bounds them.", upTo(mostTokens)},
		field{"tpm", "Tokens a minute; without it, nothing bounds them.", upTo(mostTokens)},
		field{
			"allow", "What requests may ask of the provider beside answers.",
			someOf(object{{"type", "string"}, {"pattern", "^(remote_urls|files|((field|tool|part):)?[a-z0-9][a-z0-9_.-]{0,63})$"}}),
		},
		field{"images", "It takes images: agents show it those that their tools return; by default what is known of all in use.", flagged()},
	)
}
