// Package form makes a form of an input, and an input of what is posted.
//
// A Field describes what may be given; capsule/contract makes one of a contract. The main path, in call
// order: Fill puts an earlier input into the fields; a page shows the controls; Read makes the input of what
// a browser posts, and the controls again, for a page that shows what is wrong. What a control can't show
// stands beside it as JSON, so that nothing of an earlier input is lost.
//
// A control is named by the JSON pointer of its value, such as "/address/street" or "/keywords/0"; the box
// with its JSON by "#" and that pointer. An empty control gives nothing: no text, and no object of empty
// controls, unless the contract requires that object. Where null alone can stand for nothing it gives null.
//
// What is posted is hostile: values, rows and controls are counted. The caller bounds the bytes. Whether an
// input keeps its contract is for package contract to say. The package knows no HTML and no schemas.
//
// Its Go API may change with every release: see docs/stability.md.
package form
