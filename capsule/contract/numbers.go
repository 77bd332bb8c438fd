package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
)

func (c *compiler) number(n *node, key string, v any, at string) {
	if number, ok := wants[json.Number](c, v, at, "a number", "1"); ok {
		n.form[key] = number
	}
}

func (c *compiler) multipleOf(n *node, key string, v any, at string) {
	number, ok := wants[json.Number](c, v, at, "a number", "0.01")
	if !ok {
		return
	}
	if rat := rational(number); rat == nil || rat.Sign() <= 0 {
		c.fail(at, "for example 0.01", "must be greater than 0")
		return
	}
	n.form[key] = number
}

// exclusive reads draft-06's numbers, and draft-04's booleans where it is declared.
func (c *compiler) exclusive(n *node, key string, v any, at string) {
	if _, ok := v.(bool); ok && slices.Contains(slices.Collect(maps.Values(c.drafts)), draft4) {
		n.form[key] = v
		return
	}
	if _, ok := v.(bool); ok {
		c.fail(at, `write the number here, and leave the "minimum" or "maximum" out`,
			"expected a number, got boolean, which is how draft-04 had it")
		return
	}
	c.number(n, key, v, at)
}

// count reads a whole number from 0, such as maxLength, into draft-07's plainest form.
func (c *compiler) count(n *node, key string, v any, at string) {
	number, ok := wants[json.Number](c, v, at, "a whole number", "10")
	if !ok {
		return
	}
	rat := rational(number)
	if rat == nil || !rat.IsInt() || rat.Sign() < 0 || rat.Num().BitLen() > 53 {
		c.fail(at, "for example 10", "must be a whole number from 0")
		return
	}
	n.form[key] = json.Number(rat.Num().String())
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
		is, ok := n.form[exclusive].(bool)
		if !ok {
			continue
		}
		delete(n.form, exclusive)
		if value, given := n.form[plain]; is && given {
			delete(n.form, plain)
			n.form[exclusive] = value
		}
	}
}

func (c *compiler) order(n *node, low, high string) {
	a, hasLow := n.form[low].(json.Number)
	b, hasHigh := n.form[high].(json.Number)
	if hasLow && hasHigh && rational(a).Cmp(rational(b)) > 0 {
		c.fail(n.pointer+"/"+low, fmt.Sprintf("swap them, or lower %q", low),
			"%q is greater than %q, so that nothing would be allowed", low, high)
	}
}
