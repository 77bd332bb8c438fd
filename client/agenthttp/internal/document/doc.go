// Package document reads the JSON documents of the agent HTTP contract, and holds the rules
// for them. The client and the checker judge by the same rules.
//
// Read turns text into Fields; Sync and Terminal are the Rules for the answers; ReadRefusal
// and JudgeRefusal are for refusals.
//
// Documents are hostile: no error and no reason quotes one. It must not know HTTP.
package document
