package contract

import (
	"encoding/json"
	"fmt"
	"math/big"
)

func (c *compiler) unique(n *node, v any, pointer string) {
	if unique, ok := wants[bool](c, v, pointer, "true or false", "true"); ok {
		n.compares = n.compares || unique
		n.assert(pointer, unique)
	}
}

func (c *compiler) bound(n *node, v any, pointer string) {
	if number, ok := wants[json.Number](c, v, pointer, "a number", "1"); ok {
		n.assert(pointer, number)
	}
}

func (c *compiler) multipleOf(n *node, v any, pointer string) {
	number, ok := wants[json.Number](c, v, pointer, "a number", "0.01")
	if !ok {
		return
	}
	if rat := rational(number); rat == nil || rat.Sign() <= 0 {
		c.fail(pointer, "for example 0.01", "must be greater than 0")
		return
	}
	n.assert(pointer, number)
}

// exclusive reads draft-06's numbers, and draft-04's booleans where it is declared.
func (c *compiler) exclusive(n *node, v any, pointer string) {
	if _, ok := v.(bool); ok && c.draft4 {
		n.assert(pointer, v)
		return
	}
	if _, ok := v.(bool); ok {
		c.fail(pointer, `write the number here, and leave the "minimum" or "maximum" out`, "expected a number, got boolean, which is how draft-04 had it")
		return
	}
	c.bound(n, v, pointer)
}

// count reads a whole number from 0, such as maxLength, into draft-07's plainest form.
func (c *compiler) count(n *node, v any, pointer string) {
	number, ok := wants[json.Number](c, v, pointer, "a whole number", "10")
	if !ok {
		return
	}
	rat := rational(number)
	if rat == nil || !rat.IsInt() || rat.Sign() < 0 || rat.Num().BitLen() > 53 {
		c.fail(pointer, "for example 10", "must be a whole number from 0")
		return
	}
	n.assert(pointer, json.Number(rat.Num().String()))
}

func rational(n json.Number) *big.Rat {
	rat, ok := new(big.Rat).SetString(string(n))
	if !ok {
		return nil
	}
	return rat
}

// pairs looks at keywords that mean something together.
func (c *compiler) pairs(n *node) {
	for _, what := range []string{"Length", "Items", "Properties"} {
		c.order(n, "min"+what, "max"+what)
	}
	c.order(n, "minimum", "maximum")
	for plain, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		is, ok := n.asserts[exclusive].(bool)
		if !ok {
			continue
		}
		delete(n.asserts, exclusive)
		if value, given := n.asserts[plain]; is && given {
			delete(n.asserts, plain)
			n.asserts[exclusive] = value
		}
	}
}

func (c *compiler) order(n *node, low, high string) {
	a, hasLow := n.asserts[low].(json.Number)
	b, hasHigh := n.asserts[high].(json.Number)
	if hasLow && hasHigh && rational(a).Cmp(rational(b)) > 0 {
		c.fail(n.pointer+"/"+low, fmt.Sprintf("swap them, or lower %q", low), "%q is greater than %q, so that nothing would be allowed", low, high)
	}
}
